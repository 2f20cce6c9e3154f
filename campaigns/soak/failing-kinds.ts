import { type ExecutionResult, type RunOptions, SandglassError } from '../../src/index.ts'
import { endless } from './host-tools.ts'
import { type RunContext, completedWith, difference, type Expected, type Kind } from './kind.ts'

const CRASHED: Expected = { status: 'crashed', errorKind: 'crash' }
const FAILED: Expected = { status: 'failed', errorKind: 'error' }
const TIMED_OUT: Expected = { status: 'timed-out', errorKind: 'timeout' }
const CANCELLED: Expected = { status: 'cancelled', errorKind: 'cancelled' }
const BRIEF = { executionTimeoutSec: 0.4 }

/** Scripts that fail, are stopped, or damage their sandbox. */
export const FAILING_KINDS: readonly Kind[] = [
  scriptKind('exception', 8, FAILED, 'def f(n):\n    return 1 / n\nf(0)'),
  scriptKind('syntax error', 3, FAILED, 'def f(:'),
  scriptKind('exit', 3, CRASHED, 'import os\nos._exit(3)'),
  { ...scriptKind('segmentation fault', 2, CRASHED, 'import ctypes\nctypes.string_at(0)'), needs: 'processes' },
  scriptKind('kill -9 of itself', 2, CRASHED, 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)'),
  scriptKind('deadline of a loop', 2, TIMED_OUT, 'while True: pass', BRIEF),
  scriptKind('deadline of C', 1, TIMED_OUT, 'sum(range(10 ** 12))', BRIEF),
  scriptKind(
    'memory hog',
    1,
    { status: 'memory-limit', errorKind: 'oom' },
    'hoard = []\nwhile True: hoard.append(bytearray(1 << 24))',
  ),
  scriptKind(
    'flood',
    2,
    { status: 'output-limit', errorKind: 'output_limit' },
    'import os\nblock = b"x" * 65536\nwhile True: os.write(1, block)',
  ),
  scriptKind(
    'disk hog',
    1,
    completedWith('full'),
    `try:
    with open("hoard", "wb") as file:
        while True: file.write(bytes(1 << 20))
except OSError:
    emit_result("full")`,
  ),
  {
    ...scriptKind(
      'fork bomb',
      1,
      TIMED_OUT,
      'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass',
      { ...BRIEF, pids: 32 }, // 64 Pythons may need more memory than the limit
    ),
    needs: 'processes',
  },
  {
    ...scriptKind(
      'children that try to outlive',
      3,
      completedWith('left'),
      `import os, signal, subprocess
subprocess.Popen(["sleep", "1000"], start_new_session=True)
reading, writing = os.pipe()
if os.fork() == 0:
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.write(writing, b".")
        while True: signal.pause()
    os._exit(0)
os.read(reading, 1)
emit_result("left")`,
    ),
    needs: 'processes',
  },
  {
    name: 'cancelled',
    weight: 6,
    run: (context, random) =>
      expectCancelledAfter(random.below(300), (signal) => context.sg.run('import time\ntime.sleep(30)', { signal })),
  },
  {
    name: 'cancelled in a tool call',
    weight: 3,
    run: (context, random) =>
      expectCancelledAfter(random.below(300), (signal) => context.sg.run('endless(n=1)', { signal, tools: [endless] })),
  },
  {
    name: 'cancelled check',
    weight: 1,
    async run({ sg }, random) {
      const abort = new AbortController()
      const timer = setTimeout(() => abort.abort(), random.below(20))
      try {
        const { violations } = await sg.check('x = 1\n'.repeat(500), { signal: abort.signal })
        return violations.length === 0 ? undefined : 'a valid script has violations'
      } catch (error) {
        return isAborted(error) ? undefined : String(error)
      } finally {
        clearTimeout(timer)
      }
    },
  },
  {
    name: 'wrong request',
    weight: 2,
    async run({ sg }) {
      try {
        await sg.run('1', { executionId: '' })
        return 'the call accepted an empty executionId'
      } catch (error) {
        return error instanceof SandglassError && error.code === 'invalid_request' ? undefined : String(error)
      }
    },
  },
  { name: 'lost sandbox', weight: 1, run: expectLostSandbox },
]

function scriptKind(
  name: string,
  weight: number,
  expected: Expected,
  script: string,
  limits?: NonNullable<RunOptions['limits']>,
): Kind {
  return {
    name,
    weight,
    run: async ({ sg }) => difference(await sg.run(script, limits === undefined ? {} : { limits }), expected),
  }
}

/** Expects a cancellation: an error of the call before a sandbox is ready, or the result of the run afterwards. */
async function expectCancelledAfter(
  ms: number,
  act: (signal: AbortSignal) => Promise<ExecutionResult>,
): Promise<string | undefined> {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), ms)
  try {
    return difference(await act(abort.signal), CANCELLED)
  } catch (error) {
    return isAborted(error) ? undefined : String(error)
  } finally {
    clearTimeout(timer)
  }
}

function isAborted(error: unknown): boolean {
  return error instanceof SandglassError && error.code === 'aborted'
}

/** Kills the process of the sandbox during the script. */
async function expectLostSandbox({ sg, engine, killSandbox }: RunContext): Promise<string | undefined> {
  let sandboxId = ''
  // Docker reports a kill within 2 s after a memory kill in the same container as a memory kill, too (docs/limitations/docker.md).
  const result = await sg.run('import time\ntime.sleep(2.2)\nemit_intermediate("here", 1)\ntime.sleep(30)', {
    onEvent: (event) => {
      if (event.type === 'started') sandboxId = event.sandboxId
      if (event.type === 'intermediate') killSandbox(sandboxId)
    },
  })
  // The broker of Pyodide runs in the host, so only the process of the script can be killed.
  const expected: Expected = engine === 'pyodide' ? CRASHED : { status: 'sandbox-lost', errorKind: 'infrastructure' }
  return difference(result, expected)
}
