"""mend_policy.py VAR [CODE=FILE]: sets right what `make run` wrote into the policy of this machine's agent (VAR/agent/agent.toml)
where that no longer is: the folder of the data was moved, or the model's file. What else is in it is its owner's.
"""

import json
import pathlib
import sys


def main() -> None:
    var = sys.argv[1]
    policy = pathlib.Path(var, "agent", "agent.toml")
    before = policy.read_text()
    after = moved(before, var)
    for model in sys.argv[2:]:
        code, _, file = model.partition("=")
        after = with_model(after, code, file)
    if after != before:
        # In one step: the policy is never half there.
        unfinished = policy.with_suffix(".new")
        unfinished.write_text(after)
        unfinished.chmod(policy.stat().st_mode)
        unfinished.rename(policy)
        print(f"  {policy}: paths that had moved were set right")


def moved(text: str, var: str) -> str:
    """The policy with every path below the folder that the data was in before below the one that it is in now."""
    for line in text.splitlines():
        if line.startswith('work_dir = "') and line.endswith('/agent/work"'):
            earlier = line.removeprefix('work_dir = "').removesuffix('/agent/work"')
            if earlier != var and not pathlib.Path(earlier, "agent").exists():
                return text.replace(f'"{earlier}/', f'"{var}/')
    return text


def with_model(text: str, code: str, file: str) -> str:
    """The policy with `file` for the model `code`, unless it names one that is there."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        name, _, value = line.partition(" = ")
        if name != json.dumps(code):
            continue
        named = value.strip().strip("\"'")
        if named.startswith("/") and not pathlib.Path(named).exists():
            lines[number] = f"{name} = {json.dumps(file)}\n"
        return "".join(lines)
    # [models] is the policy's last table.
    return text.rstrip("\n") + f"\n{json.dumps(code)} = {json.dumps(file)}\n"


if __name__ == "__main__":
    main()
