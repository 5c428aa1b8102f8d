"""Makes the first inputs for the fuzzer: requests and bodies of the vectors, and the parts of the presets.

    python3 fuzz/seeds.py

The vectors' secrets are none of the fuzzer's, and where a key is fetched it is another one: no seed is signed."""

import json
import pathlib
import re
import shutil

HERE = pathlib.Path(__file__).parent
VERIFY = HERE.parent / "crates/sekali-verify"
PRESETS = sorted(path.stem for path in (VERIFY / "src/presets").glob("*.toml"))
# Requests of a preset, and the longest body that is taken.
EACH, LONGEST = 2, 3000

# Public keys that fit the vectors' names, whose private halves nobody has.
RSA = {
    "kty": "RSA",
    "n": "7uhJkECgTB1eSkye6_uP3ZZ6t-5qkG2aUexsAC8-iCC42SWpgbtyk4JlNxttc8ACQvJSZjbRdVQBXjL1A0wB6LQZhud-W3OlJmVc5YTY_5b2"
    "sjHImIxIMQ12yGb0P4uVJaetqx8XwhQcqDwEaNnXQ39PfncJWPomH7acWvGhR1AM-nBB_VrO3Jx2U_755HDBV4lMJpOzQ6jjXEV2flFwj64vQYFW"
    "XPmWqnJsL2_txmDyHiA15o4EfET0ofC0HiN3E_dNVJQ6hBFH193aiZB3gSB0wr656F3VTac8BR6arQRYVvXFYLNbVFdW1Ac6yYvJLiFfayGKRqRo"
    "XjWgTyiioQ",
    "e": "AQAB",
}
EC = {
    "kty": "EC",
    "crv": "P-256",
    "x": "D_VEDjha-yLhxp_OSKdCsHq3qlVRdUjlMi_TYSqkkxg",
    "y": "kJQptatkL9EvfD_kLDqmS4-1O4UbVGI2Fi4Dc2SnRCA",
}
CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIDNzCCAh+gAwIBAgIUei5g2DJe3aEbZhDfeyz8ffbeDXAwDQYJKoZIhvcNAQEL
BQAwHDEaMBgGA1UEAwwRc25zLmFtYXpvbmF3cy5jb20wHhcNMjYxMjAxMDU0MjAx
WhcNMzYxMTI4MDU0MjAxWjAcMRowGAYDVQQDDBFzbnMuYW1hem9uYXdzLmNvbTCC
ASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBAO7oSZBAoEwdXkpMnuv7j92W
erfuapBtmlHsbAAvPogguNklqYG7cpOCZTcbbXPAAkLyUmY20XVUAV4y9QNMAei0
GYbnfltzpSZlXOWE2P+W9rIxyJiMSDENdshm9D+LlSWnrasfF8IUHKg8BGjZ10N/
T353CVj6Jh+2nFrxoUdQDPpwQf1aztycdlP++eRwwVeJTCaTs0Oo41xFdn5RcI+u
L0GBVlz5lqpybC9v7cZg8h4gNeaOBHxE9KHwtB4jdxP3TVSUOoQRR9fd2omQd4Eg
dMK+uehd1U2nPAUemq0EWFb1xWCzW1RXVtQHOsmLyS4hX2shikakaF41oE8ooqEC
AwEAAaNxMG8wHQYDVR0OBBYEFDcIXmmgRW7Zh8/AyyfsRtJRnH7RMB8GA1UdIwQY
MBaAFDcIXmmgRW7Zh8/AyyfsRtJRnH7RMA8GA1UdEwEB/wQFMAMBAf8wHAYDVR0R
BBUwE4IRc25zLmFtYXpvbmF3cy5jb20wDQYJKoZIhvcNAQELBQADggEBAMsoIQgK
xx+4Qu6fyGIsiMTUdaYsztvD1vvr2tCNLfw5GQLNeBBGHktnnI7mzTJ6DCj+P5dy
NzFToSuV4COL1PGMju781eBn/UCYg4eLd4/pNvrCdRRhzfk+UbqSTVlLpNP0r/JT
84q44n4evhdtNxrs2R90fZsOck5EQwyvnYLaio2+y4Xra/0Py+04MGp1idjUPXQt
wq8uu0U+hISJQVeNwPQCS8qmWGvRNHWbLQQ64T7YXXUeJyPsZaFzbBOeNmPQGirG
JO0fLnerdAVqQBn7XpyKK57Dme+RZtJ2sk+3Jcurncf22vTY/d8gZCUlPMZ9B1xi
kfSU33RfYNonyVg=
-----END CERTIFICATE-----
"""

# What no vector has.
JSON = {
    "escapes": rb'{"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t":"\u0000 \uD800 \udc00"}',
    "numbers": b"[0,-0,1.50,1E+2,9007199254740993,1e999,-1.0e-0]",
    "mark": b'\xef\xbb\xbf {"a":{"b":[1],"b":2}} \r\n',
    "depth": b"[" * 128 + b"]" * 128,
    "words": b'/a/{/b}/c\n/*/b/*\n../a\nkey:/*\0{"a":[{"b":[{"c":1},2]},{"b":[]}],"b":"a"}',
    "batch": b'/events/*/b\n/events/*\n/*/*\0{"events":[{"b":[1]},[2],"x,]\\""],"e\\u0076ents":[3]}',
}
PLACES = """/a/b/{/contains/0}/*/id
../../a/b
key:/*
inner:/x
header:x-id
decoded-header:ce-id
query:a""", """form:a.b
xml:/n/*/c
tail:0
literal:{not a place}
count:../../first
hash:body
hash:form:x
{/a}:{header:x}-{/b?}"""


def main():
    shutil.rmtree(HERE / "seeds", ignore_errors=True)
    vectors = json.loads((VERIFY / "testdata/vectors.json").read_text())
    for name in PRESETS:
        requests(name, [vector for vector in vectors if vector["provider"] == name])
        declarations(name, (VERIFY / f"src/presets/{name}.toml").read_text())
    for name, text in JSON.items():
        write("json", name, text)
    for index, text in enumerate(PLACES):
        write("declarations", f"places-{index}", b"l" + text.encode())


def requests(name, vectors):
    short = [vector for vector in vectors if len(vector["body"] or "") <= LONGEST]
    good = [vector for vector in short if vector["expect"] in ("valid", "challenge")]
    # The first, and one that differs as much as a vector of the same provider can.
    chosen = (good[:1] + good[:0:-1] + short)[:EACH]
    for index, vector in enumerate(chosen):
        body = (vector["body"] or "").encode()
        # One of them asks for a diagnosis, and a certificate is only looked into where its chain is not.
        switches = b"A" if "cert_pem" in vector.get("params", {}) else b"0@"[index : index + 1]
        write("presets", vector["id"], bytes([PRESETS.index(name)]) + switches + request(vector, body))
        if index == 0 and body.startswith((b"{", b"[")):
            write("json", vector["id"], body)


def request(vector, body):
    lines = [f"{vector['method']} {vector['url']} 1/updated"]
    for key, value in vector["headers"].items():
        lines += [f"{key}: {one}" for one in (value if isinstance(value, list) else [value])]
    return "\n".join(lines).encode() + b"\n\n" + body + document(vector.get("params", {}))


def document(params):
    if "cert_pem" in params:
        return b"\n\0\n" + CERTIFICATE.encode()
    keys = (params.get("jwks") or {}).get("keys", [])
    keys = [{"kid": key["kid"], **(EC if key["kty"] == "EC" else RSA)} for key in keys]
    return b"\n\0\n" + json.dumps({"keys": keys}).encode() if keys else b""


def declarations(name, text):
    if PRESETS.index(name) % 4 == 0:
        write("declarations", f"{name}-preset", b"p" + text.encode())
    tables = re.split(r"^\[+(.*?)\]+\n", text, flags=re.M)
    seen = set()
    for table, part in zip(tables[1::2], tables[2::2]):
        if table in ("scheme", "handshake", "map") and table not in seen:
            seen.add(table)
            write("declarations", f"{name}-{table}", table[0].encode() + part.strip().encode() + b"\n")


def write(folder, name, content):
    path = HERE / "seeds" / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


if __name__ == "__main__":
    main()
