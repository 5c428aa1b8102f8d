"""Has a real `sekali serve` take what the SDKs signed, and the SDKs take what `sekali send` signed.

Usage: drive.py SEKALI. Everything runs on loopback, in a folder that is removed at the end."""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

HERE = pathlib.Path(__file__).parent
SIGN = [["node", "sign.mjs"], [str(HERE / "venv/bin/python"), "sign.py"]]
ACCEPT = [["node", "accept.mjs"], [str(HERE / "venv/bin/python"), "accept.py"]]
# CloudEvents has no signature that a changed body could break.
UNSIGNED = {"cloudevents"}


def variable(preset):
    return "SECRET_" + preset.upper().replace("-", "_")


def configure(folder, requests):
    tables = ['[server]\nlisten = "127.0.0.1:0"\ninternal_listen = "127.0.0.1:0"\n[store]\nurl = "sqlite:sekali.db"\n']
    environment = {}
    for request in requests:
        source = request["id"]
        public = request["url"].split("?")[0]
        environment[variable(source)] = request["secret"]
        tables.append(
            f'[[source]]\nid = "{source}"\npreset = "{request["preset"]}"\nsecrets = ["env:{variable(source)}"]\n'
            f'public_url = "{public}"\n'
        )
    (folder / "sekali.toml").write_text("\n".join(tables))
    return {**os.environ, **environment}


def start(sekali, folder, environment):
    process = subprocess.Popen([sekali, "serve"], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "ready" in line and "address=" in line:
            return process, line.split("address=")[1].split()[0].strip('"')
    raise SystemExit("sekali did not start")


def post(address, request, body):
    connection = http.client.HTTPConnection(address, timeout=10)
    query = urllib.parse.urlsplit(request["url"]).query
    target = f"/hooks/{request['id']}" + (f"?{query}" if query else "")
    connection.request("POST", target, body.encode(), request["headers"])
    return connection.getresponse().status


def ours(sekali, folder, environment, request):
    """Signs a body with `sekali send`, for the address that the SDK will be told."""
    (folder / "event.json").write_text(request["body"])
    command = [sekali, "send", "--print", "--url", "http://localhost/", "--public-url", request["url"]]
    command += ["--preset", request["preset"], "--secret", "env:" + variable(request["id"]), "event.json"]
    kind = {name.lower(): value for name, value in request["headers"].items()}["content-type"]
    command += [f"--header=content-type:{kind}"]
    command += [f"--header={name}:{value}" for name, value in request["headers"].items() if name.startswith("ce-")]
    printed = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
    return {**json.loads(printed), "id": request["id"], "preset": request["preset"], "secret": request["secret"]}


def judge(lines, *arguments):
    text = "\n".join(json.dumps(line) for line in lines) + "\n"
    refused = []
    for command in ACCEPT:
        ran = subprocess.run([*command, *arguments], cwd=HERE, input=text, capture_output=True, text=True)
        print(ran.stdout, end="")
        if ran.returncode != 0:
            refused.append(" ".join(command) + ran.stderr)
    return refused


def main():
    sekali = str(pathlib.Path(sys.argv[1]).resolve())
    printed = [subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True).stdout for command in SIGN]
    requests = [json.loads(line) for text in printed for line in text.splitlines()]
    problems = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = configure(folder, requests)
        process, address = start(sekali, folder, environment)
        try:
            for request in requests:
                status = post(address, request, request["body"])
                forged = post(address, request, request["body"].replace("1", "2", 1))
                print(f"{request['id']}: {status}, with another body {forged}")
                if not 200 <= status < 300 or (forged != 401 and request["preset"] not in UNSIGNED):
                    problems.append(request["id"])
        finally:
            process.terminate()
            process.wait()
        lines = [ours(sekali, folder, environment, request) for request in requests]
        problems += judge(lines) + judge(lines, "--tamper")
    if problems:
        raise SystemExit(f"not as it should be: {problems}")
    print(f"{len(requests)} requests were taken by Sekali, and as many of Sekali's by the SDKs")


if __name__ == "__main__":
    main()
