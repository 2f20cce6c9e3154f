/*
 * The program in the child process: makes Pyodide ready ahead, shuts everything that a script is not to reach, and then
 * waits for one script. The host ends the process after it; nothing of one run is left for another.
 */
import { Buffer } from 'node:buffer'
import { closeSync, writeSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { checkAround } from './checks.ts'
import { collect } from './collection.ts'
import { openDescriptors, SignalClock } from './devices.ts'
import type { FileSystem, Pyodide, WasmMemory } from './emscripten.ts'
import { Intake } from './intake.ts'
import { removeBuiltinModules } from './inittab.ts'
import { type Interpreter, loadInterpreter } from './interpreter.ts'
import { machineCodeOf, optimizeAtOnce } from './machine-code.ts'
import { limitFiles, MemoryBudget } from './quota.ts'
import { hideNode, shutRealm } from './realm.ts'
import { openSnapshot, type Snapshot } from './snapshot.ts'
import { snapshotBytes } from './snapshot-parts.ts'
import {
  FDS,
  type GuestMessage,
  readExactly,
  readMessage,
  type RunMessage,
  type StartMessage,
  tell,
  writeFully,
} from './wire.ts'

/** What the process may hold beside Python's memory and files: V8, Node and the compiled WebAssembly. */
const OVERHEAD_BYTES = 256 * 1024 * 1024

/** What is done before a snapshot is taken. */
const WARM_UP = `
import sys
sys.path.insert(0, HARNESS)
from sandglass_harness import in_place
in_place.warm_up()
`

const exit = process.exit.bind(process)
// Not as Node would tell it, with a line of Pyodide's source that has a megabyte.
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
  else if (plan.task === 'train') await train(plan, files, openSnapshot(plan.snapshot))
  else await serve(plan, files, openSnapshot(plan.snapshot))
}

async function makeSnapshot(plan: StartMessage, files: Uint8Array): Promise<void> {
  hideNode()
  const { pyodide, compiled } = await loadInterpreter(plan.pyodide, { maxBytes: plan.limits.memoryBytes })
  putFiles(pyodide.FS, plan, files)
  warmUp(pyodide, plan)
  const bytes = snapshotBytes(compiled(), pyodide.makeMemorySnapshot())
  tell({ type: 'made', bytes: bytes.length })
  writeFully(FDS.frames, bytes)
  exit(0)
}

function warmUp(pyodide: Pyodide, { harness }: StartMessage): void {
  pyodide.runPython(WARM_UP.replace('HARNESS', JSON.stringify(harness)))
  removeBuiltinModules(pyodide._module.HEAPU8)
}

/** Runs one script as any instance does, and gives the machine code of what it used. */
async function train(plan: StartMessage, files: Uint8Array, snapshot: Snapshot): Promise<void> {
  optimizeAtOnce()
  const { module, clock, live } = await makeReady(plan, files, snapshot)
  const next = readMessage()
  if (next?.type !== 'run') return
  const { exitCode } = runScript(next, clock, live)
  if (exitCode !== 0) return
  // Told ahead: a V8 that was built without it may end the process.
  tell({ type: 'no-machine-code', reason: 'V8 ended the process when it was asked for machine code' })
  try {
    const code = machineCodeOf(module)
    tell({ type: 'made', bytes: code.length })
    writeFully(FDS.stderr, code) // where the script says nothing
  } catch (error) {
    tell({ type: 'no-machine-code', reason: String(error) })
  }
}

async function serve(plan: StartMessage, files: Uint8Array, snapshot: Snapshot): Promise<void> {
  const watching = new Int32Array(new SharedArrayBuffer(4))
  const watch = watchWith(watching)
  watch(true)
  const watchdog = new Worker(new URL(import.meta.url.replace(/main\.(\w+)$/, 'watchdog.$1')), {
    workerData: { maxRssBytes: plan.limits.memoryBytes + OVERHEAD_BYTES, watching },
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1 },
  })
  watchdog.unref()
  const around = await checkAround()
  const { ready, FS, budget, clock, live } = await makeReady(plan, files, snapshot)
  tell({ type: 'ready', ...ready, checks: { ...around, ...ready.checks } })
  watch(false)
  waitForRun(plan, FS, budget, clock, () => {
    watch(true)
    return live()
  })
}

/** An instance in which nothing is open any more that a script is not to reach. */
interface ReadyInstance extends Pick<Interpreter, 'module'> {
  readonly ready: Omit<Extract<GuestMessage, { type: 'ready' }>, 'type'>
  readonly FS: FileSystem
  readonly budget: MemoryBudget
  readonly clock: SignalClock
  readonly live: () => unknown
}

async function makeReady(plan: StartMessage, files: Uint8Array, snapshot: Snapshot): Promise<ReadyInstance> {
  hideNode()
  const { pyodide, memory, module, isFromCache, hasMachineCode, shutBridge } = await loadInterpreter(plan.pyodide, {
    maxBytes: plan.limits.memoryBytes,
    snapshot,
  })
  const { FS } = pyodide
  const budget = new MemoryBudget(plan.limits.memoryBytes, () => memory.buffer.byteLength)
  limitHeap(memory, budget)
  putFiles(FS, plan, files)
  const clock = new SignalClock()
  openDescriptors(FS, clock)
  pyodide.setInterruptBuffer(clock.buffer)
  const python = pyodide.pyimport('sandglass_harness.in_place')
  for (const home of ['/home/web_user', '/home']) FS.rmdir(home)
  limitFiles(FS, plan.limits.scratch, budget)
  FS.ignorePermissions = false
  FS.chdir(plan.workspace)
  shutRealm(plan.modules)
  const told = JSON.parse(String(python['prepare']?.(JSON.stringify(plan.config)))) as ReadyInstance['ready']
  const checks = { ...told.checks, code_from_cache: isFromCache, machine_code: hasMachineCode }
  const live = python['live']
  shutBridge()
  return { ready: { ...told, checks }, module, FS, budget, clock, live: () => live?.() }
}

/** Wakes the watchdog, or lets it rest. */
function watchWith(watching: Int32Array): (on: boolean) => void {
  const { store, notify } = Atomics // gone from the global object by the time of the run
  return (on) => {
    store(watching, 0, on ? 1 : 0)
    if (on) notify(watching, 0)
  }
}

/** Python's memory grows as long as it and the files are within the limit. */
function limitHeap(memory: WasmMemory, budget: MemoryBudget): void {
  const grow = memory.grow.bind(memory)
  Object.defineProperty(memory, 'grow', {
    value: (pages: number): number => {
      if (!budget.holds(pages * 65_536)) throw new RangeError('the memory is full')
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

function waitForRun(
  { workspace }: StartMessage,
  FS: FileSystem,
  budget: MemoryBudget,
  clock: SignalClock,
  live: () => unknown,
): void {
  const intake = new Intake(FS, workspace)
  for (;;) {
    const next = readMessage()
    if (next === undefined) return exit(0)
    if (next.type === 'wipe') intake.wipe()
    else if (next.type === 'put')
      intake.put(next.path, next.mode, next.offset, Buffer.from(next.contentBase64, 'base64'))
    else if (next.type === 'run' && intake.problem !== undefined) {
      readMessage() // the request
      tell({ type: 'refused', ...intake.problem })
      intake.wipe()
    } else if (next.type === 'run') {
      budget.maxBytes = Math.min(budget.maxBytes, next.memoryBytes ?? Infinity)
      run(next, clock, live)
      collect(FS, workspace, next.collect, performance.now() + next.collectMs)
    }
  }
}

function run(order: RunMessage, clock: SignalClock, live: () => unknown): void {
  tell({ type: 'ended', ...runScript(order, clock, live) })
  // Their ends tell the host that nothing more comes.
  for (const fd of [FDS.frames, FDS.stdout, FDS.stderr]) closeSync(fd)
}

/** How a script ended: by an exit code, or by a fault of the interpreter. */
type ScriptEnd = Omit<Extract<GuestMessage, { type: 'ended' }>, 'type'>

function runScript({ deadlineMs }: RunMessage, clock: SignalClock, live: () => unknown): ScriptEnd {
  clock.start(deadlineMs)
  let exitCode: number | null = null
  let fault: string | null = null
  try {
    exitCode = Number(live())
  } catch (error) {
    // os._exit unwinds everything; all else is a fault of the interpreter, as a stack that overflowed.
    const { name, message: text } = error as { name?: unknown; message?: unknown }
    const status = /^Program terminated with exit\((-?\d+)\)$/.exec(String(text))?.[1]
    if (status === undefined) fault = `${String(name)}: ${String(text)}`.slice(0, 1000)
    else exitCode = Number(status) & 0xff
  }
  clock.stop()
  return { exitCode, fault }
}
