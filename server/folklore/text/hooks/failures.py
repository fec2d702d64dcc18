"""Failures of commands: whether an output tells of one, and the question that it asks."""

import re

# Characters of a command and of the end of its output that are asked, and those of an output that are looked at.
_COMMAND = 200
_OUTPUT = 900
_READ = 4_000
_EXIT_CODE = re.compile(r"\A(?:Error: )?Exit code:? -?\d+\n?")
# What programs print when they fail, of any language and tool.
_MARKS = re.compile(
    r"""
      ^\W{0,9}(?:\w[\w.-]{0,40}:[ ])?(?i:error|fatal|panic)(?:\[\w{1,20}\])?:  # git's fatal: …, rustc's error[E0308]: …
    | ^[^\s:]{1,200}:\d+:\d+:[ ]                                         # main.c:3:5: …, as compilers and linters say
    | [:)][ ]error\b                                                     # tsc's a.ts(3,10): error TS2724
    | ^Traceback[ ]\(most[ ]recent[ ]call[ ]last\)
    | \b[A-Z]\w{0,60}(?:Error|Exception)\b                              # TypeError, NullPointerException
    | \b(?:FAILED|FAIL|FATAL|ERROR|ERR!|ERR_\w{1,40}|OOMKilled|Terminated|Killed)(?!\w)
    | \b(?:Failed|failed[ ]to|failed:|rejected|exceeded|panicked[ ]at)
    | \b(?i:command[ ]not[ ]found|no[ ]such[ ]file[ ]or[ ]directory|permission[ ]denied|connection[ ]refused)\b
    | \b(?i:segmentation[ ]fault|out[ ]of[ ]memory|core[ ]dumped|timed[ ]out)\b
    | \b(?i:(?:exit|exited[ ]with)[ ](?:code|status)[:=]?\s{0,9}[1-9]|rc=[1-9])
    | \b[1-9]\d{0,5}[ ](?:tests?[ ])?(?i:failed|errors?|failures?|failing)\b
    | \b(?i:could[ ]not|cannot|can't|unable[ ]to|is[ ]not[ ]a|not[ ]found)\b
    """,
    re.MULTILINE | re.VERBOSE,
)


def looks_failed(output: str) -> bool:
    """Return whether the end of an output tells of a failure.

    Assistants cut outputs by `| tail`, which succeeds whatever the command before it does, and some do not pass on the
    exit code.
    """
    return _MARKS.search(output[-_READ:]) is not None


def without_exit_code(output: str) -> str:
    """Return an output without the line that an assistant puts before it."""
    return _EXIT_CODE.sub("", output)


def failure_question(command: str, output: str) -> str:
    """Return what a failure asks: the command, and the last lines that it printed."""
    end = output.strip()
    if len(end) > _OUTPUT:
        # A whole line begins it, unless that is the only one.
        end = end[-_OUTPUT:]
        end = end.partition("\n")[2] or end
    return f"{command.strip()[:_COMMAND]}\n{end}"
