import { INSIDE } from '../../sandbox/index.ts'

/**
 * A host that died before bubblewrap asked to die with it left a channel that is hung up, and nobody who would kill what
 * starts here: PID 1 sees no parent that could be missing.
 */
const CHECK = 'hangup = select.poll(); hangup.register(0, 0); hangup.poll(0) and sys.exit(1)'
const START = `import select, sys; ${CHECK}; sys.path.insert(0, ${JSON.stringify(INSIDE.harness)}); from sandglass_harness import start; start.main()`

/**
 * The Python that PID 1 runs. It names the sandbox, and stands in the command line from the launcher's first instant:
 * no process of a sandbox is ever without it or an ancestor that has it.
 */
export function startCode(id: string): string {
  return `${START} # ${id}`
}

/** The sandbox that a command line as /proc gives it was made for; undefined when it is no launcher's or harness's. */
export function markIn(commandLine: string): string | undefined {
  const [config, code = '', flag] = commandLine.split('\0').slice(0, -1).toReversed()
  if (flag !== '-c' || config?.startsWith('{') !== true || !code.startsWith(`${START} # `)) return undefined
  return /^[\w-]{1,64}$/.exec(code.slice(START.length + 3))?.[0]
}
