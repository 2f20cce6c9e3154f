/*
 * The program in the child process. It loads Pyodide, removes or blocks everything that a script must not reach, and waits for
 * one script. The host ends the process after the script, so that no run affects the next one.
 */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { closeSync, writeSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { Carrier } from './carrier.ts'
import { checkSurroundings } from './checks.ts'
import { collect } from './collection.ts'
import { openDescriptors, SignalClock } from './devices.ts'
import type { FileSystem, Pyodide, WasmMemory } from './emscripten.ts'
import { allowOptimization } from './flags.ts'
import { Intake } from './intake.ts'
import { removeBuiltinModules } from './inittab.ts'
import { loadInterpreter } from './interpreter.ts'
import { type FileChanges, limitFiles, MemoryBudget } from './quota.ts'
import { hideNode, closeRealm } from './realm.ts'
import { SHARED } from './shared.ts'
import { Traffic } from './traffic.ts'
import { openSnapshot, type Snapshot, snapshotBytes } from './snapshot.ts'
import {
  FDS,
  type GuestMessage,
  readExactly,
  readMessage,
  type RunMessage,
  type StartMessage,
  send,
  type TurnMessage,
  writeFully,
} from './wire.ts'

/** Memory that the process needs in addition to Python's memory and files: V8, Node and the compiled WebAssembly. */
const OVERHEAD_BYTES = 256 * 1024 * 1024

/** Python code that runs before a snapshot is taken. */
const WARM_UP = `
import sys
sys.path.insert(0, HARNESS)
from sandglass_harness.script import in_place
from sandglass_harness.session import in_place as _
in_place.warm_up()
`

const exit = process.exit.bind(process)
const measureMemory = process.memoryUsage.rss.bind(process)
const programBeside = (name: string): URL => new URL(import.meta.url.replace(/instance\.(\w+)$/, `${name}.$1`))
const INTERRUPTS = programBeside('interrupts') // before the realm is closed
/** The start of the clock that the watchdog shares: `performance` has another origin in each thread. */
const monotonic = process.hrtime.bigint.bind(process.hrtime)
const ORIGIN = monotonic()
const now = (): number => Number((monotonic() - ORIGIN) / 1_000_000n) + 1
// Node's own report would contain a source line of Pyodide, which is a megabyte long.
process.on('uncaughtException', (error) => {
  writeSync(2, `${error.stack ?? error.message}\n`)
  exit(1)
})
const message = readMessage()
if (message?.type === 'start') await start(message)
exit(0)

async function start(plan: StartMessage): Promise<void> {
  const files = readExactly(plan.fileBytes)
  if (files === undefined) exit(0)
  else if (plan.task === 'snapshot') await makeSnapshot(plan, files)
  else await serve(plan, files, openSnapshot(plan.snapshot))
}

async function makeSnapshot(plan: StartMessage, files: Uint8Array): Promise<void> {
  hideNode()
  const { pyodide, createCodeCache } = await loadInterpreter(plan.pyodide, { maxBytes: plan.limits.memoryBytes })
  putFiles(pyodide.FS, plan, files)
  warmUp(pyodide, plan)
  const bytes = snapshotBytes({ cachedCode: createCodeCache(), memory: pyodide.makeMemorySnapshot() })
  send({ type: 'snapshot', bytes: bytes.length })
  writeFully(FDS.frames, bytes)
  exit(0)
}

function warmUp(pyodide: Pyodide, { harness }: StartMessage): void {
  pyodide.runPython(WARM_UP.replace('HARNESS', JSON.stringify(harness)))
  removeBuiltinModules(pyodide._module.HEAPU8)
}

async function serve(plan: StartMessage, files: Uint8Array, snapshot: Snapshot): Promise<void> {
  const shared = new Int32Array(new SharedArrayBuffer(4 * SHARED.size))
  const watch = makeWatch(shared)
  watch(true)
  const watchdog = new Worker(programBeside('watchdog'), {
    workerData: { maxRssBytes: plan.limits.memoryBytes + OVERHEAD_BYTES, shared, origin: ORIGIN },
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
  })
  // Node's modules are loaded before the flags of scripts are set.
  const [surroundings] = await Promise.all([checkSurroundings(), once(watchdog, 'message')])
  watchdog.unref()
  const instance = await makeReady(plan, files, snapshot, shared)
  allowOptimization()
  send({ type: 'ready', ...instance.ready, checks: { ...surroundings, ...instance.ready.checks } })
  watch(false)
  waitForRun(plan, instance, { shared, watch })
}

/** An instance that can receive a script. It has removed or blocked everything that the script must not reach. */
interface ReadyInstance {
  readonly ready: Omit<Extract<GuestMessage, { type: 'ready' }>, 'type'>
  readonly FS: FileSystem
  readonly changes: FileChanges
  readonly budget: MemoryBudget
  readonly clock: SignalClock
  readonly traffic: Traffic
  /** Receives the request and runs the script. Returns the exit code. */
  readonly runRequest: () => unknown
  /** Receives and serves a request of a session: a cell, or a list of its variables. Returns the exit code. */
  readonly runSessionRequest: () => unknown
}

async function makeReady(
  plan: StartMessage,
  files: Uint8Array,
  snapshot: Snapshot,
  shared: Int32Array,
): Promise<ReadyInstance> {
  hideNode()
  const { pyodide, memory, isFromCache, libc, closeBridge } = await loadInterpreter(plan.pyodide, {
    maxBytes: plan.limits.memoryBytes,
    snapshot,
  })
  const { FS } = pyodide
  const budget = new MemoryBudget(plan.limits.memoryBytes, () => memory.buffer.byteLength)
  limitHeap(memory, budget)
  putFiles(FS, plan, files)
  const clock = new SignalClock(shared, now)
  const traffic = new Traffic()
  openDescriptors(FS, clock, traffic)
  pyodide.setInterruptBuffer(clock.buffer)
  const python = pyodide.pyimport('sandglass_harness.script.in_place')
  const session = pyodide.pyimport('sandglass_harness.session.in_place')
  for (const home of ['/home/web_user', '/home']) FS.rmdir(home)
  const changes = limitFiles(FS, plan.limits.scratch, budget)
  FS.ignorePermissions = false
  FS.chdir(plan.workspace)
  closeRealm(plan.modules)
  const prepared = JSON.parse(String(python['prepare']?.(JSON.stringify(plan.config)))) as ReadyInstance['ready']
  const checks = { ...prepared.checks, code_from_cache: isFromCache, libc, memory_bytes: measureMemory() }
  const [runRequest, runSessionRequest] = [python['run_request'], session['run_request']]
  closeBridge()
  const parts = { FS, changes, budget, clock, traffic }
  return {
    ready: { ...prepared, checks },
    ...parts,
    runRequest: () => runRequest?.(),
    runSessionRequest: () => runSessionRequest?.(),
  }
}

/** Returns a function that wakes the watchdog or lets it sleep. */
function makeWatch(shared: Int32Array): (on: boolean) => void {
  const { store, notify } = Atomics // deleted from the global object before the run
  return (on) => {
    store(shared, SHARED.on, on ? 1 : 0)
    if (on) notify(shared, SHARED.on)
  }
}

/** Lets Python's memory grow only if it stays within the limit together with the files. */
function limitHeap(memory: WasmMemory, budget: MemoryBudget): void {
  const grow = memory.grow.bind(memory)
  Object.defineProperty(memory, 'grow', {
    value: (pages: number): number => {
      if (!budget.holds(pages * 65_536)) throw new RangeError('the instance is out of memory')
      return grow(pages)
    },
  })
}

function putFiles(FS: FileSystem, { files }: StartMessage, bytes: Uint8Array): void {
  for (const { path, start, end } of files) {
    FS.mkdirTree(path.slice(0, path.lastIndexOf('/')))
    FS.writeFile(path, bytes.subarray(start, end), { canOwn: true })
  }
}

function waitForRun({ workspace }: StartMessage, instance: ReadyInstance, { shared, watch }: Watched): void {
  const { FS, changes, budget } = instance
  const intake = new Intake(FS, workspace)
  const carrier = new Carrier(FS, workspace, changes)
  for (;;) {
    const next = readMessage()
    if (next === undefined) return exit(0)
    if (next.type === 'wipe') intake.wipe()
    else if (next.type === 'put')
      intake.put(next.path, next.mode, next.offset, Buffer.from(next.contentBase64, 'base64'))
    else if (next.type === 'restore') carrier.restore(next.entries)
    else if (next.type === 'session') startInterruptThread(shared)
    else if (next.type === 'sync') carrier.sync(next.entries)
    else if (next.type === 'cell' || next.type === 'look') {
      watch(true)
      serveTurn(next, instance)
      watch(false)
      if (next.type === 'look') continue
      carrier.send()
      collect(FS, workspace, next.collect)
    } else if (next.type === 'run' && intake.problem !== undefined) {
      readMessage() // discards the request, which follows `run`
      send({ type: 'refused', ...intake.problem })
      intake.wipe()
    } else if (next.type === 'run') {
      budget.maxBytes = Math.min(budget.maxBytes, next.memoryBytes ?? Infinity)
      watch(true)
      run(next, instance)
      if (next.keep === true) carrier.send()
      collect(FS, workspace, next.collect)
    }
  }
}

/** The memory that this thread shares with others, and the function that switches the watchdog. */
interface Watched {
  readonly shared: Int32Array
  readonly watch: (on: boolean) => void
}

function run(order: RunMessage, { clock, runRequest }: ReadyInstance): void {
  const { exitCode, fault } = runScript(order, clock, runRequest)
  send({ type: 'ended', exitCode, fault })
  // The end of these pipes tells the host that no more output follows.
  for (const fd of [FDS.frames, FDS.stdout, FDS.stderr]) closeSync(fd)
}

/** Receives the interrupts of cells in a separate thread, because a cell blocks this one. */
function startInterruptThread(shared: Int32Array): void {
  const workerData = { shared }
  new Worker(INTERRUPTS, {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
  }).unref()
}

function serveTurn(order: TurnMessage, { clock, traffic, runSessionRequest }: ReadyInstance): void {
  traffic.takeWritten()
  const end = runScript(order, clock, runSessionRequest)
  if (!traffic.dropRest()) exit(0)
  send({ type: 'ended', ...end, written: traffic.takeWritten() })
}

/**
 * The end of a script: an exit code, or a fault of the interpreter. `lives` is true if the call returned, so that the instance
 * can serve again.
 */
interface ScriptEnd {
  readonly exitCode: number | null
  readonly fault: string | null
  readonly lives: boolean
}

function runScript(order: RunMessage | TurnMessage, clock: SignalClock, serve: () => unknown): ScriptEnd {
  clock.start(order, order.type === 'run' ? 0 : order.turn)
  let lives = false
  let exitCode: number | null = null
  let fault: string | null = null
  try {
    exitCode = Number(serve())
    lives = true
  } catch (error) {
    // os._exit throws as well; any other exception is a fault of the interpreter, for example a stack overflow.
    const { name, message: text } = error as { name?: unknown; message?: unknown }
    const status = /^Program terminated with exit\((-?\d+)\)$/.exec(String(text))?.[1]
    if (status === undefined) fault = `${String(name)}: ${String(text)}`.slice(0, 1000)
    else exitCode = Number(status) & 0xff
  }
  clock.stop()
  return { exitCode, fault, lives }
}
