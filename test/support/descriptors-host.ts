/**
 * A separate host that runs a script with 0, 1, 2 … free file descriptors each:
 * once in a new Sandglass, once in one that was used before. `descriptors-host.ts ENGINE MAX STEP` prints the outcome
 * of each, and of a script after it when descriptors are free again.
 */
import { closeSync, openSync, readdirSync, watch } from 'node:fs'
import { join } from 'node:path'
import { listResources } from '../../src/engines/local/index.ts'
import { createSandglass, SandglassError, type Sandglass } from '../../src/index.ts'
import { eventually } from './eventually.ts'

/** The outcome of a script with a number of free descriptors. */
export interface WithFew {
  readonly free: number
  readonly sandglass: 'new' | 'used'
  readonly said: string
  readonly retryable: boolean | undefined
  /** The status of a run once descriptors are free again. */
  readonly later: string
  /** The enforced limits of that run. */
  readonly limits: readonly string[]
}

/** The output of such a host. */
export interface HostReport {
  readonly found: readonly WithFew[]
  /** The number of sandboxes. */
  readonly sandboxes: number
  /** Resources of its sandboxes that are left after the last run. */
  readonly left: string | undefined
}

const CLEAN_MS = 5000
const SETTLE_MS = 30_000
const [, , engine = '', most = '', step = ''] = process.argv
const held: number[] = []
/** Only the sandboxes of this state directory, because others on the machine start and end meanwhile. */
const own = new Set<string>()

const found: WithFew[] = []
await using used = await open()
await used.run('emit_result(1)')
const stateDir = process.env['SANDGLASS_STATE_DIR'] ?? ''
if (engine === 'local') watch(join(stateDir, 'sandboxes'), (_, name) => own.add(name?.split('.', 1)[0] ?? '')).unref()
for (let free = 0; free <= Number(most); free += Number(step)) {
  found.push(await withFew(free, 'new'), await withFew(free, 'used'))
}
const left = await eventually(async () => {
  const resources = (await listResources()).filter(({ sandbox }) => own.has(sandbox ?? ''))
  return resources.length === 0 ? undefined : JSON.stringify(resources)
}, CLEAN_MS)
console.log(JSON.stringify({ found, sandboxes: own.size, left } satisfies HostReport))

/** Each run has a new sandbox. The first one of Pyodide waits for its snapshot, which takes long on a busy machine. */
function open(): Promise<Sandglass> {
  if (engine !== 'local' && engine !== 'pyodide') throw new TypeError(`no engine ${engine}`)
  return createSandglass({ engine, poolSize: 0, maxOverflow: 1, maxUses: 1, checkoutTimeoutMs: 120_000 })
}

async function withFew(free: number, which: WithFew['sandglass']): Promise<WithFew> {
  await settle()
  takeAllBut(free)
  const outcome = await run(which).then(
    ({ said }) => ({ said, retryable: undefined }),
    (error: unknown) =>
      error instanceof SandglassError
        ? { said: `${error.code}: ${error.message}`, retryable: error.retryable }
        : { said: `no SandglassError: ${String(error)}`, retryable: undefined },
  )
  for (const fd of held.splice(0)) closeSync(fd)
  const later = await run(which).catch((error: unknown) => ({ said: String(error), limits: [] }))
  return { free, sandglass: which, ...outcome, later: later.said, limits: later.limits }
}

async function run(which: WithFew['sandglass']): Promise<{ said: string; limits: readonly string[] }> {
  if (which === 'used') return resultOf(used)
  await using opened = await open()
  return await resultOf(opened)
}

async function resultOf(sandglass: Sandglass): Promise<{ said: string; limits: readonly string[] }> {
  const { status, sandbox } = await sandglass.run('emit_result(1)')
  return { said: status, limits: sandbox.limitsEnforced }
}

/** Waits until no sandbox of the used Sandglass is left: one that has had its only use ends in the background, and then frees descriptors. */
async function settle(): Promise<void> {
  let open = -1
  const problem = await eventually(() => {
    const { idle, leased, starting, created, destroyed } = used.stats()
    if (idle + leased + starting > 0 || created !== destroyed)
      return `sandboxes are left: ${JSON.stringify(used.stats())}`
    const before = open
    open = readdirSync('/proc/self/fd').length
    return open === before ? undefined : `${open} descriptors are open, and ${before} were`
  }, SETTLE_MS)
  if (problem !== undefined) throw new Error(problem)
}

function takeAllBut(free: number): void {
  try {
    for (;;) held.push(openSync('/dev/null', 'r'))
  } catch {
    // no descriptor is free any more
  }
  for (const fd of held.splice(0, free)) closeSync(fd)
}
