import { isDeepStrictEqual } from 'node:util'
import { pause } from '../../bench/measure.ts'
import { SandglassError } from '../../src/index.ts'
import type { Random } from '../../test/support/random.ts'
import { type Kind, type RunContext, short } from './kind.ts'
import { describeCell, differenceOf, SESSION_STEPS, type Walk } from './session-steps.ts'

/** Fewer processes than by default, for a fork bomb that ends in time beside other load. */
const LIMITS = { pids: 32 }
const IDLE_SEC = 0.2
/** By a timer that runs late on a busy machine. */
const LATEST_IDLE_SEC = 10
/** Ends the copy, which a cell can signal, and then the head. */
const KILL_ALL = `import os
mine = {os.getpid(), os.getppid(), 1}
for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
    try: pid in mine or os.kill(pid, 9)
    except OSError: pass
os._exit(1)`

/** Sessions: cells that end well and badly, checkpoints, branches, and every end of a session. */
export const SESSION_KINDS: readonly Kind[] = [
  { name: 'session in random steps', weight: 4, needs: 'sessions', run: takeAllSteps },
  { name: 'sessions side by side', weight: 2, needs: 'sessions', run: runSideBySide },
  { name: 'session closed in a cell', weight: 2, needs: 'sessions', run: closeInCell },
  { name: 'session left idle', weight: 1, needs: 'sessions', run: leaveIdle },
  { name: 'session without checkpoints', weight: 1, needs: 'sessions', run: loseWithoutCopy },
  { name: 'session that kills its copy', weight: 1, needs: 'sessions', run: killCopy },
  { name: 'lost session', weight: 1, needs: 'sessions', run: loseSandbox },
]

/** Every step once, in a random order. */
async function takeAllSteps({ sg }: RunContext, random: Random): Promise<string | undefined> {
  await using session = await sg.session({ limits: LIMITS })
  await session.run('x = []')
  const walk: Walk = { session, random, x: [], kept: [] }
  const left = [...SESSION_STEPS]
  for (;;) {
    const [step] = left.splice(random.below(left.length), 1)
    if (step === undefined) return undefined
    const problem = await step.take(walk)
    if (problem !== undefined) return `${step.name}: ${problem}`
    const after = await session.run('x')
    if (!isDeepStrictEqual(after.value, walk.x))
      return `after ${step.name}: ${describeCell(after)}, not ${short(walk.x)}`
  }
}

/** Three sessions with checkpoints and branches beside a program. They are closed with their workspace. */
async function runSideBySide({ sg }: RunContext, random: Random): Promise<string | undefined> {
  await using workspace = await sg.workspace()
  const program = await workspace.start('cat')
  const sessions = await Promise.all([1, 2, 3].map(() => workspace.session()))
  const cells = await Promise.all(
    sessions.map(async (session, index) => {
      await session.run(`x = ${index}`)
      const checkpoints = [await session.checkpoint(), await session.checkpoint()]
      await session.run('x = -1\nimport os\nos._exit(1)')
      const [branch] = await session.branch(1)
      await session.restore(checkpoints[random.below(2)]?.id ?? '')
      return [(await session.run('x')).value, (await branch?.run('x += 10\nx'))?.value]
    }),
  )
  const found = [cells, program.status]
  const expected = [[0, 1, 2].map((x) => [x, x + 10]), 'running']
  return isDeepStrictEqual(found, expected) ? undefined : `${short(found)} instead of ${short(expected)}`
}

async function closeInCell({ sg }: RunContext, random: Random): Promise<string | undefined> {
  const session = await sg.session()
  await session.checkpoint()
  const close = (): void => void setTimeout(() => void session.close(), random.below(50))
  const cell = await session.run('emit_log("begun")\nwhile True: pass', { onLog: close })
  await session.close()
  return differenceOf(cell, { status: 'cancelled', state: 'lost' }) ?? (await expectRefusal(session, 'session_closed'))
}

async function leaveIdle({ sg }: RunContext): Promise<string | undefined> {
  await using session = await sg.session({ idleTimeoutSec: IDLE_SEC })
  await session.run('x = 1')
  for (let sec = 2 * IDLE_SEC; sec < LATEST_IDLE_SEC; sec *= 2) {
    await pause(sec * 1000)
    if ((await expectRefusal(session, 'workspace_closed')) === undefined) return undefined
  }
  return 'an idle session stayed open'
}

async function loseWithoutCopy({ sg }: RunContext): Promise<string | undefined> {
  await using session = await sg.session({ checkpoints: 'off' })
  await session.run('import subprocess\nleft = subprocess.Popen(["sleep", "1000"])')
  const cell = await session.run('import os\nos._exit(1)')
  return differenceOf(cell, { status: 'crashed', state: 'lost' }) ?? (await expectRefusal(session, 'session_lost'))
}

async function killCopy({ sg }: RunContext): Promise<string | undefined> {
  await using session = await sg.session()
  const cell = await session.run(KILL_ALL)
  return differenceOf(cell, { status: 'crashed', state: 'lost' }) ?? (await expectRefusal(session, 'session_lost'))
}

/** Kills the broker of the sandbox under a session and its branch. */
async function loseSandbox({ sg, killSandbox }: RunContext): Promise<string | undefined> {
  await using workspace = await sg.workspace()
  const session = await workspace.session()
  const [branch] = await session.branch(1)
  const cell = await session.run('emit_log("begun")\nwhile True: pass', { onLog: () => killSandbox(workspace.id) })
  const problem = differenceOf(cell, { status: 'sandbox-lost', state: 'lost' })
  if (problem !== undefined || branch === undefined) return problem
  return (await expectRefusal(session, 'workspace_lost')) ?? (await expectRefusal(branch, 'workspace_lost'))
}

async function expectRefusal(
  session: { run(cell: string): Promise<unknown> },
  code: string,
): Promise<string | undefined> {
  try {
    await session.run('1')
    return `a cell ran in place of ${code}`
  } catch (error) {
    return error instanceof SandglassError && error.code === code ? undefined : `${String(error)} in place of ${code}`
  }
}
