import { type ExecutionResult, type RunOptions, SandglassError } from '../../src/index.ts'
import { endless } from './host-tools.ts'
import { type Bed, completed, difference, type Expected, type Kind } from './kind.ts'

const CRASHED: Expected = { status: 'crashed', errorKind: 'crash' }
const FAILED: Expected = { status: 'failed', errorKind: 'error' }
const TIMED_OUT: Expected = { status: 'timed-out', errorKind: 'timeout' }
const CANCELLED: Expected = { status: 'cancelled', errorKind: 'cancelled' }
const BRIEF = { executionTimeoutSec: 0.4 }

/** Scripts that fail, are ended, or do harm to their sandbox. */
export const FAILING_KINDS: readonly Kind[] = [
  scripted('exception', 8, FAILED, 'def f(n):\n    return 1 / n\nf(0)'),
  scripted('syntax error', 3, FAILED, 'def f(:'),
  scripted('exit', 3, CRASHED, 'import os\nos._exit(3)'),
  { ...scripted('segmentation fault', 2, CRASHED, 'import ctypes\nctypes.string_at(0)'), needs: 'processes' },
  scripted('kill -9 of itself', 2, CRASHED, 'import os, signal\nos.kill(os.getpid(), signal.SIGKILL)'),
  scripted('deadline of a loop', 2, TIMED_OUT, 'while True: pass', BRIEF),
  scripted('deadline of C', 1, TIMED_OUT, 'sum(range(10 ** 12))', BRIEF),
  scripted(
    'memory hog',
    1,
    { status: 'memory-limit', errorKind: 'oom' },
    'hoard = []\nwhile True: hoard.append(bytearray(1 << 24))',
  ),
  scripted(
    'flood',
    2,
    { status: 'output-limit', errorKind: 'output_limit' },
    'import os\nblock = b"x" * 65536\nwhile True: os.write(1, block)',
  ),
  scripted(
    'disk hog',
    1,
    completed('full'),
    `try:
    with open("hoard", "wb") as file:
        while True: file.write(bytes(1 << 20))
except OSError:
    emit_result("full")`,
  ),
  {
    ...scripted(
      'fork bomb',
      1,
      TIMED_OUT,
      'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass',
      BRIEF,
    ),
    needs: 'processes',
  },
  {
    ...scripted(
      'children that try to outlive',
      3,
      completed('left'),
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
    run: (bed, random) =>
      cancelledAfter(random.below(300), (signal) => bed.sg.run('import time\ntime.sleep(30)', { signal })),
  },
  {
    name: 'cancelled in a tool call',
    weight: 3,
    run: (bed, random) =>
      cancelledAfter(random.below(300), (signal) => bed.sg.run('endless(n=1)', { signal, tools: [endless] })),
  },
  {
    name: 'cancelled check',
    weight: 1,
    async run({ sg }, random) {
      const abort = new AbortController()
      const timer = setTimeout(() => abort.abort(), random.below(20))
      try {
        const { violations } = await sg.check('x = 1\n'.repeat(500), { signal: abort.signal })
        return violations.length === 0 ? undefined : 'a right script has violations'
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
        return 'it was taken'
      } catch (error) {
        return error instanceof SandglassError && error.code === 'invalid_request' ? undefined : String(error)
      }
    },
  },
  { name: 'lost sandbox', weight: 1, run: lost },
]

function scripted(
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

/** A cancellation before there is a sandbox is an error of the call, one that comes later the result of the run. */
async function cancelledAfter(
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

/** What runs the script is killed from outside in the middle of it. */
async function lost({ sg, engine, killSandbox }: Bed): Promise<string | undefined> {
  let sandboxId = ''
  // On Docker, within 2 s of a kill for memory in the same container, it would be taken for one (docs/limitations/docker.md).
  const result = await sg.run('import time\ntime.sleep(2.2)\nemit_intermediate("here", 1)\ntime.sleep(30)', {
    onEvent: (event) => {
      if (event.type === 'started') sandboxId = event.sandboxId
      if (event.type === 'intermediate') killSandbox(sandboxId)
    },
  })
  // Where the broker stands in the host, only the process of the script can be killed.
  const expected: Expected = engine === 'pyodide' ? CRASHED : { status: 'sandbox-lost', errorKind: 'infrastructure' }
  return difference(result, expected)
}
