import { INSIDE } from '../../sandbox/index.ts'

/**
 * Ends PID 1 if its channel is hung up: its host died before bubblewrap set `--die-with-parent`. Nothing else would
 * kill it, because PID 1 cannot see that its parent is gone.
 */
const CHECK = 'hangup = select.poll(); hangup.register(0, 0); hangup.poll(0) and sys.exit(1)'
const START = `import select, sys; ${CHECK}; sys.path.insert(0, ${JSON.stringify(INSIDE.harness)}); from sandglass_harness import start; start.main()`

/**
 * Makes the Python code that PID 1 runs. It names the sandbox and is in the command line from the launcher's first instant:
 * every process of a sandbox has it, or an ancestor that has it.
 */
export function startCode(id: string): string {
  return `${START} # ${id}`
}

/** Reads the sandbox's id from a command line in /proc; undefined when the process is neither a launcher nor a harness. */
export function readMark(commandLine: string): string | undefined {
  const [config, code = '', flag] = commandLine.split('\0').slice(0, -1).toReversed()
  if (flag !== '-c' || config?.startsWith('{') !== true || !code.startsWith(`${START} # `)) return undefined
  return /^[\w-]{1,64}$/.exec(code.slice(START.length + 3))?.[0]
}
