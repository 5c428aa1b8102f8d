"""Makes the first inputs for the fuzzer: bodies and requests of the vectors, and the presets themselves.

    python3 fuzz/seeds.py"""

import json
import pathlib

HERE = pathlib.Path(__file__).parent
VERIFY = HERE.parent / "crates/sekali-verify"
PRESETS = sorted(path.stem for path in (VERIFY / "src/presets").glob("*.toml"))


def main():
    seen = {}
    for vector in json.loads((VERIFY / "testdata/vectors.json").read_text()):
        name = vector["provider"]
        seen[name] = seen.get(name, 0) + 1
        body = vector.get("body") or ""
        if seen[name] > 1 or len(body) > 2000:
            continue
        headers = "\n".join(f"{key}: {value}" for key, value in vector["headers"].items())
        head = f"{vector['method']} {vector['url']}\n{headers}\n\n"
        number = bytes([PRESETS.index(name)])
        (HERE / f"seeds/presets/{vector['id']}").write_bytes(number + head.encode() + body.encode())
        if body.startswith(("{", "[")):
            (HERE / f"seeds/json/{vector['id']}").write_text(body)
    for name in PRESETS:
        text = (VERIFY / f"src/presets/{name}.toml").read_text()
        for index, part in enumerate(text.split("[[scheme]]")[1:2]):
            scheme = part.split("\n[")[0].strip() + "\n"
            (HERE / f"seeds/declarations/{name}-{index}").write_text(scheme)


if __name__ == "__main__":
    main()
