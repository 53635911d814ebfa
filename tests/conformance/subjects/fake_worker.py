"""A worker that plays the script which its target is: a JSON object from operations and checks to what they do.

They have an outcome (pass, fail, …) or do something else: `exit N`, `kill N`, `hang`, `garbage`, `noise`, `child FILE`,
`once FILE`.
"""

import json
import os
import subprocess
import sys
import time


def say(answer: dict[str, object]) -> None:
    """Answer with one line."""
    print(json.dumps(answer), flush=True)


def play(behaviour: str) -> None:
    """What a worker does before its answer, or instead of it."""
    match behaviour.split():
        case ["exit", status]:
            os._exit(int(status))
        case ["kill", number]:
            os.kill(os.getpid(), int(number))
        case ["hang"]:
            time.sleep(600)
        case ["garbage"]:
            print("this is no answer", flush=True)
        case ["noise"]:
            sys.stderr.write("x" * 1000 + "\n" + "y" * 10_000_000 + '\n  File "solution.py", line 7 in kl_k1\n')
            sys.stderr.flush()
            os._exit(7)
        case ["child", path]:
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            with open(path, "w") as file:
                file.write(str(child.pid))
        case ["once", path]:
            if os.path.exists(path):
                os._exit(9)
            open(path, "w").close()


def main() -> None:
    """Answer a setup and then the requests."""
    setup = json.loads(sys.stdin.readline())
    script = json.loads(setup["target"])
    play(script.pop("start", ""))
    if "unusable" in script:
        say({"type": "unusable", "message": script["unusable"]})
        return
    operations = sorted({key.partition("/")[0] for key in script})
    ready = {"type": "ready", "operations": operations, "convention": {"name": "lecture"}}
    say(ready | {"sha256": "0", "python": "3", "libraries": {}})
    for line in sys.stdin:
        request = json.loads(line)
        if request["type"] == "explain":
            play(script.get("explain", ""))
            say(
                {
                    "type": "explanation",
                    "operation": request["operation"],
                    "text": "behaves like a script",
                    "fault": "F-1",
                }
            )
            continue
        identity = request["check"]
        operation = identity.partition("/")[0]
        behaviour = script.get(identity) or script[operation]
        play(behaviour)
        kind = "robustness" if "refuses" in identity or "side-effects" in identity else "conformance"
        answer = {"id": identity, "title": identity, "operations": [operation], "claims": [], "kind": kind}
        outcome = behaviour if " " not in behaviour else "pass"
        failure = {} if outcome == "pass" else {"failure": {"message": f"{identity} is scripted"}}
        say({"type": "check", "outcome": outcome, **answer, **failure})


if __name__ == "__main__":
    main()
