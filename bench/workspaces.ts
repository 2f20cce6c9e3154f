import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Workspace } from '../src/index.ts'
import { measureInTurns, measureMs } from './measure.ts'
import { ms, ratioRow, type Row } from './row.ts'
import { createSandglass } from './subject.ts'

const SMALL_FILES = 10_000
const LARGE_BYTES = 512 * 1024 * 1024
const MiB = 1024 * 1024
const GiB = 1024 * MiB
const ROUNDS = 200

/** Measures workspaces: programs, scripts, many small files and a large one, each compared with the same work without a sandbox. */
export async function workspaces(): Promise<Row[]> {
  await using sg = await createSandglass({
    engine: 'local',
    poolSize: 1,
    limits: { memoryBytes: 4 * GiB, diskBytes: 1.5 * GiB },
  })
  await using ws = await sg.workspace()
  return [
    ...(await programs(ws)),
    ...(await scripts(sg, ws)),
    await firstByte(ws),
    ...(await smallFiles(ws)),
    ...(await largeFile(ws)),
  ]
}

/** Compares a program with the same fork, exec and wait by a Python in the same sandbox. */
async function programs(ws: Workspace): Promise<Row[]> {
  const floor = [
    'import os, time',
    'taken = []',
    `for _ in range(${ROUNDS}):`,
    '    began = time.perf_counter()',
    '    pid = os.fork()',
    '    if pid == 0: os.execvp("true", ["true"])',
    '    os.waitpid(pid, 0)',
    '    taken.append((time.perf_counter() - began) * 1000)',
    '    time.sleep(0.005)',
    'emit_result(sorted(taken)[len(taken) // 2])',
  ].join('\n')
  const alone = Number((await ws.run<number>(floor)).finalData)
  const { ours } = await measureInTurns(ROUNDS, 5, { ours: () => measureMs(() => ws.exec('true')) })
  const p50 = ours?.p50 ?? 0
  return [
    ratioRow(
      `\`ws.exec('true')\`, 5 ms between calls, p50 (n=${ROUNDS})`,
      `${ms(p50)} vs ${ms(alone)}`,
      p50 / alone,
      2,
      'fork, exec and wait by Python',
    ),
  ]
}

async function scripts(sg: Awaited<ReturnType<typeof createSandglass>>, ws: Workspace): Promise<Row[]> {
  const took = await measureInTurns(ROUNDS, 5, {
    pool: () => measureMs(() => sg.run('emit_result(1)')),
    workspace: () => measureMs(() => ws.run('emit_result(1)')),
  })
  const [pool, workspace] = [took['pool']?.p50 ?? 0, took['workspace']?.p50 ?? 0]
  return [
    ratioRow(`\`ws.run\`, p50 (n=${ROUNDS})`, `${ms(workspace)} vs ${ms(pool)}`, workspace / pool, 1.3, '`sg.run`'),
  ]
}

/** Measures the time from the write of a byte by a program to its arrival, by the clock that both share. */
async function firstByte(ws: Workspace): Promise<Row> {
  const code = 'import time, sys\nfor _ in range(200):\n    time.sleep(0.005)\n    print(time.time(), flush=True)'
  await using program = await ws.start('python3', ['-c', code])
  const taken: number[] = []
  for await (const { bytes } of program.output) {
    const arrived = performance.timeOrigin + performance.now()
    for (const line of Buffer.from(bytes).toString().trim().split('\n')) taken.push(arrived - Number(line) * 1000)
  }
  taken.sort((a, b) => a - b)
  const p50 = taken[Math.floor(taken.length / 2)] ?? 0
  return {
    what: 'from a line that a program writes until the caller has it, p50 (n=200)',
    figure: ms(p50),
    bound: '<= 2 ms',
    met: p50 <= 2,
  }
}

/** Compares many small files with `tar | tar` on the same machine. */
async function smallFiles(ws: Workspace): Promise<Row[]> {
  const above = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  try {
    const content = Buffer.alloc(1024, 'x')
    const names = Array.from({ length: SMALL_FILES }, (_, index) => `many/file-${index}`)
    mkdirSync(join(above, 'many'))
    for (const name of names) writeFileSync(join(above, name), content)
    const copy = (): Promise<number> =>
      measureMs(async () => {
        rmSync(join(above, 'copy'), { recursive: true, force: true })
        execFileSync('sh', ['-c', 'mkdir copy && tar c many | tar x -C copy'], { cwd: above })
        return Promise.resolve()
      })
    const files = Object.fromEntries(names.map((name) => [name, content]))
    const took = await measureInTurns(5, 0, {
      tar: copy,
      in: () => measureMs(() => ws.put(files)),
      out: () =>
        measureMs(() => {
          rmSync(join(above, 'out'), { recursive: true, force: true })
          return ws.save('many/**', join(above, 'out'), { maxFiles: SMALL_FILES })
        }),
    })
    // In separate rounds, over the files of the previous one, because the disk writes meanwhile, which would slow the others.
    const { overwrite } = await measureInTurns(5, 0, {
      overwrite: () =>
        measureMs(() => ws.save('many/**', join(above, 'out'), { maxFiles: SMALL_FILES, overwrite: true })),
    })
    const [tar, out, over] = [took['tar']?.p50 ?? 0, took['out']?.p50 ?? 0, overwrite?.p50 ?? 0]
    await ws.remove('many', { recursive: true })
    const row = (way: string, taken: number): Row =>
      ratioRow(
        `${SMALL_FILES} files of 1 KiB ${way}, p50 (n=5)`,
        `${ms(taken)} vs ${ms(tar)}`,
        taken / tar,
        3,
        '`tar | tar`',
      )
    return [
      row('in', took['in']?.p50 ?? 0),
      row('out into an empty directory', out),
      {
        what: 'the same over existing files (`overwrite: true`), p50 (n=5)',
        figure: `${ms(over)} = ${(over / out).toFixed(2)}x as long`,
      },
    ]
  } finally {
    rmSync(above, { recursive: true, force: true })
  }
}

/** Measures one file of 512 MiB in and out, and the growth of the host's memory. */
async function largeFile(ws: Workspace): Promise<Row[]> {
  const above = mkdtempSync(join(tmpdir(), 'sandglass-bench-'))
  try {
    const path = join(above, 'large')
    await using file = await open(path, 'w')
    const piece = Buffer.alloc(MiB, 'y')
    for (let written = 0; written < LARGE_BYTES; written += MiB) await file.write(piece)
    const before = process.memoryUsage().rss
    let most = before
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 20)
    const into = await measureMs(() => ws.put({ large: { path } }))
    let read = 0
    const out = await measureMs(async () => {
      for await (const bytes of ws.read('large')) read += bytes.length
    })
    clearInterval(watch)
    if (read !== LARGE_BYTES) throw new Error(`${read} bytes came back`)
    const rate = (taken: number): number => LARGE_BYTES / 1e6 / (taken / 1000)
    const row = (what: string, taken: number, bound: number): Row => ({
      what,
      figure: `${rate(taken).toFixed(0)} MB/s`,
      bound: `>= ${bound} MB/s`,
      met: rate(taken) >= bound,
    })
    const grown = (most - before) / MiB
    return [
      row('one file of 512 MiB through the channel: in', into, 300),
      row('the same file: out', out, 200),
      {
        what: "growth of the host's memory meanwhile",
        figure: `${grown.toFixed(0)} MiB`,
        bound: '<= 64 MiB',
        met: grown <= 64,
      },
    ]
  } finally {
    rmSync(above, { recursive: true, force: true })
  }
}
