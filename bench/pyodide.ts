import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type * as EngineModule from '../src/engines/pyodide/index.ts'
import type * as Library from '../src/index.ts'
import { channelEcho } from './channel-echo.ts'
import { startFloor } from './floor.ts'
import { coldStart } from './latency.ts'
import { measureInTurns, pause, summarize, measureMs } from './measure.ts'
import { ms, ratioRow, type Row, table } from './row.ts'
import { localEngine, resolveForBench, type Sandbox } from './subject.ts'
import { makeTimedCalls } from './timed-calls.ts'

const SCRIPT = 'emit_result(1)'
const CALLS = 200
/** Runs that follow each other, and the time before the first and between the two series: instances are made meanwhile. */
const IN_A_ROW = 10
const REST_MS = 5000
const PLAIN = `
const { loadPyodide } = await import(process.argv[1])
const pyodide = await loadPyodide()
if (pyodide.runPython('1') !== 1) process.exit(1)
process.exit(0)
`
/** A program that echoes each byte and does nothing else. */
const ECHO = `
const { readSync, writeSync } = require('node:fs')
const byte = Buffer.alloc(1)
while (readSync(0, byte, 0, 1, null) === 1) writeSync(1, byte)
`

/** Measures the built engine pyodide, whose instances start from JavaScript: run \`npm run build\` first. */
export async function pyodideFigures(python: string): Promise<Row[]> {
  const awake = setInterval(() => {}, 60_000)
  const cacheDir = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  const { pyodideEngine } = await built<typeof EngineModule>('engines/pyodide/index.js')
  const engine = pyodideEngine({ cacheDir })
  const local = localEngine()
  const floor = startFloor(python)
  const { spec, execute } = resolveForBench()
  try {
    await coldStart(engine) // makes the snapshot
    const cold = await measureInTurns(5, 200, { plain: plainLoad, snapshot: () => coldStart(engine) })
    await using sandbox = await engine.create(spec)
    await execute(sandbox, SCRIPT)
    const warm = await measureInTurns(20, 1500, {
      floor: () => floor.measure(),
      warm: () => measureMs(() => execute(sandbox, SCRIPT)),
    })
    await using beside = await local.create(spec)
    const calls = await toolCalls(sandbox, beside)
    const memory = memoryOf()
    const sustained = await perSecond(sandbox, execute)
    const sustainedLocal = await perSecond(beside, execute)
    const inARow = await runsInARow(cacheDir)
    const [plain = 0, snapshot = 1] = [cold['plain']?.p50, cold['snapshot']?.p50]
    return [
      { what: 'plain `loadPyodide()` in a process of Node, to its first result, p50 (n=5)', figure: ms(plain) },
      {
        what: 'cold pyodide sandbox to first result, snapshot cached, p50 (n=5)',
        figure: `${ms(snapshot)} = ${(plain / snapshot).toFixed(1)}x faster`,
        bound: '>= 4x faster',
        met: plain / snapshot >= 4,
      },
      ratioRow(
        'warm pyodide instance, p50 (n=20)',
        ms(warm['warm']?.p50 ?? 0),
        (warm['warm']?.p50 ?? 0) / (warm['floor']?.p50 ?? 1),
        10,
        'floor',
      ),
      ...calls,
      { what: 'memory of an idle instance (PSS)', figure: memory },
      { what: 'consecutive runs in one pyodide sandbox', figure: `${sustained.toFixed(1)} runs/s` },
      { what: 'the same in one local sandbox', figure: `${sustainedLocal.toFixed(0)} runs/s` },
      ...inARow,
    ]
  } finally {
    floor.close()
    await engine.close()
    await local.close()
    rmSync(cacheDir, { recursive: true, force: true })
    clearInterval(awake)
  }
}

async function built<T>(module: string): Promise<T> {
  const place = new URL(`../dist/${module}`, import.meta.url)
  if (!existsSync(place)) throw new Error('run npm run build first: from TypeScript each instance starts 0.15 s later')
  return (await import(place.href)) as T
}

async function plainLoad(): Promise<number> {
  const module = createRequire(import.meta.url).resolve('pyodide/pyodide.mjs')
  return measureMs(async () => {
    const { status } = spawnSync(process.execPath, ['--input-type=module', '--eval', PLAIN, module], {
      stdio: 'ignore',
    })
    if (status !== 0) throw new Error('Pyodide did not load')
    await Promise.resolve()
  })
}

/** Measures host tool calls on both engines, the echo of a local sandbox's channel, and a plain echo, in turn. */
async function toolCalls(sandbox: Sandbox, local: Sandbox): Promise<Row[]> {
  const run = makeTimedCalls(CALLS)
  const echo = startEcho()
  const taken = { calls: [] as number[], localCalls: [] as number[], echoes: [] as number[], bare: [] as number[] }
  for (let batch = 0; batch < 5; batch += 1) {
    const calls = await run(sandbox)
    const localCalls = await run(local)
    for (let n = 0; n < CALLS; n += 1) taken.bare.push(await measureMs(() => echo.once()))
    for (let n = 0; n < CALLS; n += 1) taken.echoes.push(await channelEcho(local))
    if (batch > 0) taken.calls.push(...calls)
    if (batch > 0) taken.localCalls.push(...localCalls)
    await pause(1500)
  }
  echo.close()
  const bare = summarize(taken.bare)
  const beside = (values: readonly number[]): string => {
    const { p50 } = summarize(values)
    return `${ms(p50)} = ${(p50 / bare.p50).toFixed(2)}x`
  }
  const call = summarize(taken.calls)
  return [
    { what: `plain echo of a byte through the pipes of a child process, p50 (n=${bare.n})`, figure: ms(bare.p50) },
    ratioRow(`host tool call of a pyodide script, p50 (n=${call.n})`, ms(call.p50), call.p50 / bare.p50, 4, 'echo'),
    { what: 'host tool call of a local script, relative to that echo, p50', figure: beside(taken.localCalls) },
    { what: "echo of a local sandbox's channel, relative to that echo, p50", figure: beside(taken.echoes) },
  ]
}

function startEcho(): { once: () => Promise<void>; close: () => void } {
  const child = spawn(process.execPath, ['--eval', ECHO], { stdio: ['pipe', 'pipe', 'inherit'] })
  return {
    once: () =>
      new Promise((resolve) => {
        child.stdout.once('data', () => resolve())
        child.stdin.write('x')
      }),
    close: () => child.stdin.end(),
  }
}

/** Sums the memory of the idle instance and its bubblewrap: all descendants of this process that belong to an instance. */
function memoryOf(): string {
  const listed = spawnSync('ps', ['-e', '-o', 'pid=,ppid=,args='], { encoding: 'utf8', maxBuffer: 1 << 26 })
  const all = listed.stdout.split('\n').map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [])
  const below = new Set([String(process.pid)])
  // Parents come before their children, unless the kernel reused a pid.
  for (const _ of [1, 2, 3]) for (const [, pid = '', parent = ''] of all) if (below.has(parent)) below.add(pid)
  const mine = all.filter(([, pid = '', , args = '']) => below.has(pid) && args.includes('pyodide/guest/main'))
  const sizes = mine.map(([, pid = '']) =>
    Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0),
  )
  return `${(sizes.reduce((sum, size) => sum + size, 0) / 1024).toFixed(0)} MiB`
}

async function perSecond(
  sandbox: Sandbox,
  execute: (on: Sandbox, script: string) => Promise<unknown>,
): Promise<number> {
  const start = performance.now()
  let runs = 0
  for (; performance.now() - start < 10_000; runs += 1) await execute(sandbox, SCRIPT)
  return (runs * 1000) / (performance.now() - start)
}

/** Measures series of runs with the default options of the pool, in three new Sandglasses; the slowest series of each kind counts. */
async function runsInARow(cacheDir: string): Promise<Row[]> {
  const { createSandglass } = await built<typeof Library>('index.js')
  const [first, again, bytes]: number[][] = [[], [], []]
  for (let n = 0; n < 3; n += 1) {
    await using sg = await createSandglass({ engine: 'pyodide', pyodide: { cacheDir } })
    await sg.run(SCRIPT)
    for (const speeds of [first, again]) {
      await pause(REST_MS)
      bytes?.push(sg.stats().idleBytes)
      speeds?.push(await runsPerSecond(() => sg.run(SCRIPT)))
    }
  }
  const row = (what: string, speeds: number[] = []): Row => {
    const worst = Math.min(...speeds)
    return { what, figure: `${worst.toFixed(1)} runs/s`, bound: '>= 10 runs/s', met: worst >= 10 }
  }
  const memory = `${(Math.max(...(bytes ?? [])) / 1024 ** 2).toFixed(0)} MiB`
  return [
    row(`${IN_A_ROW} runs in a row, default pool, the slowest of three`, first),
    row(`the same ${REST_MS / 1000} s later`, again),
    { what: 'the same: highest memory of idle sandboxes (`stats().idleBytes`)', figure: memory },
  ]
}

async function runsPerSecond(run: () => Promise<unknown>): Promise<number> {
  const took = await measureMs(async () => {
    for (let n = 0; n < IN_A_ROW; n += 1) await run()
  })
  return (IN_A_ROW * 1000) / took
}

if (import.meta.main) process.stdout.write(`${table(await pyodideFigures('/usr/bin/python3'))}\n`)
