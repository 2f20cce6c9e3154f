import { isDeepStrictEqual } from 'node:util'
import type { CellOptions, CellResult, Session, SessionCheckpoint } from '../../src/index.ts'
import type { Random } from '../../test/support/random.ts'
import { double } from './host-tools.ts'
import { short } from './kind.ts'

/** A session, and the list `x` that it must have. */
export interface Walk {
  readonly session: Session
  readonly random: Random
  /** The list as it must be. A step sets it before it returns. */
  x: readonly number[]
  readonly kept: { readonly checkpoint: SessionCheckpoint; readonly x: readonly number[] }[]
}

/** One thing that is done with a session. */
export interface Step {
  readonly name: string
  /** Resolves with a description of an unexpected outcome; undefined when all is as expected. */
  take(walk: Walk): Promise<string | undefined>
}

/** The steps of a session, in any order. */
export const SESSION_STEPS: readonly Step[] = [
  {
    name: 'a tool call',
    take: (walk) => addsNumber(walk, (n) => `x.append(double(n=${n}) // 2)`, 'step-done', { tools: [double] }),
  },
  { name: 'an exception', take: (walk) => addsNumber(walk, (n) => `x.append(${n})\n1 / 0`, 'failed') },
  { name: 'an interruption', take: interrupt },
  { name: 'displays', take: display },
  { name: 'a secret', take: hideSecret },
  { name: 'a look at variables', take: look },
  { name: 'a checkpoint', take: keep },
  { name: 'a restore', take: restore },
  { name: 'branches', take: branch },
  { name: 'programs and threads that are left', take: leavePrograms },
  { name: 'a cancellation', take: cancel },
  goesBack('an exception that rolls back', '1 / 0', 'failed', { onError: 'rollback' }),
  goesBack('a deadline of a loop', 'while True: pass', 'timed-out', { timeoutSec: 0.4 }),
  goesBack('a deadline of C', 'sum(range(10 ** 12))', 'timed-out', { timeoutSec: 0.4 }),
  goesBack('os._exit', 'import os\nos._exit(0)', 'crashed'),
  goesBack('a segmentation fault', 'import ctypes\nctypes.string_at(0)', 'crashed'),
  goesBack('kill -9 of itself', 'import os\nos.kill(os.getpid(), 9)', 'crashed'),
  goesBack('the memory limit', 'hoard = []\nwhile True: hoard.append(bytearray(1 << 24))', 'memory-limit'),
  goesBack('a flood', 'import os\nblock = b"x" * 65536\nwhile True: os.write(1, block)', 'output-limit'),
  goesBack('a fork bomb', 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass', 'timed-out', {
    timeoutSec: 0.4,
  }),
]

function goesBack(name: string, code: string, status: CellResult['status'], options: CellOptions = {}): Step {
  const take = async ({ session }: Walk): Promise<string | undefined> =>
    differenceOf(await session.run(`x.append(0)\n${code}`, options), { status, state: 'rolled-back' })
  return { name, take }
}

/** Runs a cell that adds a number to the list, which stays. */
async function addsNumber(
  walk: Walk,
  code: (n: number) => string,
  status: CellResult['status'],
  options: CellOptions = {},
): Promise<string | undefined> {
  const n = walk.random.below(1000)
  walk.x = [...walk.x, n]
  return differenceOf(await walk.session.run(code(n), options), { status, state: 'kept' })
}

function interrupt(walk: Walk): Promise<string | undefined> {
  return addsNumber(walk, (n) => `x.append(${n})\nemit_log("begun")\nwhile True: pass`, 'interrupted', {
    onLog: () => void walk.session.interrupt(),
  })
}

async function cancel({ session, random }: Walk): Promise<string | undefined> {
  const abort = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const cell = await session.run('x.append(0)\nemit_log("begun")\nwhile True: pass', {
    signal: abort.signal,
    onLog: () => (timer = setTimeout(() => abort.abort(), random.below(50))),
  })
  clearTimeout(timer)
  return differenceOf(cell, { status: 'cancelled', state: 'rolled-back' })
}

async function display({ session, random }: Walk): Promise<string | undefined> {
  const count = 1 + random.below(20)
  const cell = await session.run(`page = "<b>" + "x" * ${random.below(20_000)} + "</b>"
for _ in range(${count}): display({"text/plain": "page", "text/html": page, "image/png": bytes(10_000)}, raw=True)
[page]`)
  const kinds = cell.displays.map(({ kind, data }) => `${kind} ${Object.keys(data).toSorted().join(' ')}`)
  const expected = [...Array<string>(count).fill('display image/png text/html text/plain'), 'result text/plain']
  if (!isDeepStrictEqual(kinds, expected)) return `displays: ${short(kinds)} instead of ${short(expected)}`
  return differenceOf(cell, { status: 'step-done', state: 'kept' })
}

async function hideSecret({ session, random }: Walk): Promise<string | undefined> {
  const secret = `sk-${random.below(1e9)}-${random.below(1e9)}`
  const given = await session.run('import os\nkept = os.environ["KEY"]', { secrets: { KEY: secret } })
  const later = await session.run('print(kept, os.environ.get("KEY"))')
  if (later.stdout !== '[redacted:KEY] None\n') return `a secret: ${short(later.stdout)}`
  return differenceOf(given, { status: 'step-done', state: 'kept' })
}

async function look({ session }: Walk): Promise<string | undefined> {
  const names = (await session.variables()).map(({ name }) => name)
  const completions = await session.complete('x.app')
  return names.includes('x') && completions.join() === 'append' ? undefined : short({ names, completions })
}

async function keep({ session, kept, x }: Walk): Promise<string | undefined> {
  const checkpoint = await session.checkpoint()
  kept.push({ checkpoint, x })
  return checkpoint.grade === 'whole' ? undefined : `a checkpoint: ${short(checkpoint)}`
}

async function restore(walk: Walk): Promise<string | undefined> {
  const { kept, random, session } = walk
  const to = kept[random.below(kept.length)]
  if (to === undefined) return undefined // no checkpoint yet
  await session.run('import subprocess\nleft = subprocess.Popen(["sleep", "1000"], start_new_session=True)')
  const { ended } = await session.restore(to.checkpoint)
  walk.x = to.x
  return ended.join() === 'sleep' ? undefined : `ended: ${short(ended)}`
}

/** Two branches go on side by side; one of them crashes. */
async function branch({ session, x }: Walk): Promise<string | undefined> {
  const branches = await session.branch(2)
  try {
    const cells = await Promise.all(branches.map((one, index) => one.run(`x.append(${-index})\nx`)))
    const broken = await branches[0]?.run('x.append(0)\nimport os\nos._exit(1)')
    const after = await branches[0]?.run('x')
    const found = [...cells.map(({ value }) => value), broken?.state, after?.value]
    const expected = [[...x, 0], [...x, -1], 'rolled-back', [...x, 0]]
    return short(found) === short(expected) ? undefined : `${short(found)} instead of ${short(expected)}`
  } finally {
    await Promise.all(branches.map((one) => one.close()))
  }
}

/** A later rollback must end what a cell left. */
async function leavePrograms({ session }: Walk): Promise<string | undefined> {
  const left = await session.run(`import subprocess, threading
program = subprocess.Popen(["sleep", "1000"], start_new_session=True)
gate = threading.Event()
threading.Thread(target=gate.wait).start()`)
  const back = await session.run('x.append(0)\nimport os\nos._exit(1)')
  const after = await session.run('[program.poll(), threading.active_count()]')
  const found = [left.state, back.state, back.ended, after.value]
  const expected = ['kept', 'rolled-back', ['sleep'], [-9, 1]]
  return isDeepStrictEqual(found, expected) ? undefined : `${short(found)} instead of ${short(expected)}`
}

/** Describes how a cell differs; undefined when it is as expected. */
export function differenceOf(
  cell: CellResult,
  { status, state }: Pick<CellResult, 'status' | 'state'>,
): string | undefined {
  if (cell.status === status && cell.state === state) return undefined
  return `${describeCell(cell)} instead of ${status}, ${state}`
}

/** The end of a cell, for a person. */
export function describeCell({ status, state, value, error, checkpoint, missing, ending }: CellResult): string {
  return short({ status, state, value, error, checkpoint, missing, ending })
}
