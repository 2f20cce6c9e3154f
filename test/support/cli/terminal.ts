import type { Cli, CommandResult, Running } from './sandglass.ts'

/** What a person does at a terminal: waits for a text, then types. */
export type TerminalStep = readonly [seen: string, typed: string]

/** Gives the command a terminal. Each step waits for its text behind that of the step before; exit code 99 if it does not come. */
const DRIVER = `
import json, os, pty, select, sys, time
steps = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown, at, end, seen = b"", 0, time.monotonic() + 60, "the end"
def say(piece):
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
def more():
    global shown
    if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
        raise TimeoutError
    piece = os.read(terminal, 65536)
    shown += piece
    say(piece)
    return piece
try:
    for seen, typed in steps:
        while seen.encode() not in shown[at:]:
            more()
        at = shown.index(seen.encode(), at) + len(seen.encode())
        os.write(terminal, typed.encode())
    while more():
        pass
except OSError:
    pass
except TimeoutError:
    os.kill(pid, 9)
    say(b"\\nNOT SEEN: " + repr(seen).encode())
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(99 if code == -9 else code)
`

/** Runs a command at a terminal of its own. Both of its streams are in `stdout`. */
export function runAtTerminal(
  cli: Cli,
  args: readonly string[],
  steps: readonly TerminalStep[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  return startAtTerminal(cli, args, steps, env).ended
}

/** Starts a command at a terminal of its own; it is the only child of the process. */
export function startAtTerminal(
  cli: Cli,
  args: readonly string[],
  steps: readonly TerminalStep[],
  env: Readonly<Record<string, string>> = {},
): Running {
  const wrapper = ['/usr/bin/python3', '-c', DRIVER, JSON.stringify(steps)]
  const running = cli.start(args, { TERM: 'xterm', NO_COLOR: '1', ...env }, wrapper)
  running.child.stdin.end()
  return running
}

/** The lines as they are in the end, without the moves of the cursor by which a line editor draws them. */
export function screenOf(output: string): string {
  return (
    output
      .replaceAll('\r\n', '\n')
      .split('\n')
      .map((line) => line.split('\u001B[1G').at(-1) ?? '')
      // oxlint-disable-next-line no-control-regex -- the sequences of the line editor are what it looks for
      .map((line) => line.replaceAll(/\u001B\[[0-9;?]*[A-Za-z]|\r/g, ''))
      .join('\n')
  )
}
