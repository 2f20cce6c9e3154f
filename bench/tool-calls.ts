import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkScript, type SandboxEngine } from '../src/index.ts'
import { channelEcho } from './channel-echo.ts'
import { pause, summarize } from './measure.ts'
import { ms, ratioRow, type Row } from './row.ts'
import { dockerEngine, localEngine, resolveForBench } from './subject.ts'
import { makeTimedCalls } from './timed-calls.ts'

const BATCHES = 20
const CALLS = 100

/** Measures calls of a host tool from a script, in turn with a plain echo on the same channel; then checks of scripts. */
export async function toolCalls(): Promise<Row[]> {
  // A channel that waits for the echo does not keep this process alive, so a timer does.
  const awake = setInterval(() => {}, 60_000)
  const rows = await onEngine('local', localEngine(), 2)
  const image = process.env['BENCH_DOCKER_IMAGE']
  const docker = dockerEngine(image === undefined ? {} : { image })
  if ((await docker.report()).usable) rows.push(...(await onEngine('docker', docker, 2)))
  await docker.close()
  rows.push(...(await checks()))
  clearInterval(awake)
  return rows
}

async function onEngine(name: string, engine: SandboxEngine, most: number): Promise<Row[]> {
  const { spec } = resolveForBench()
  await using sandbox = await engine.create(spec)
  const run = makeTimedCalls(CALLS)
  const calls: number[] = []
  const echoes: number[] = []
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const times = await run(sandbox)
    if (batch > 0) calls.push(...times)
    for (let n = 0; n < CALLS; n += 1) {
      const took = await channelEcho(sandbox)
      if (batch > 0) echoes.push(took)
    }
  }
  if (name === 'local') await engine.close()
  const [call, bare] = [summarize(calls), summarize(echoes)]
  return [
    {
      what: `${name}: echo of the channel between host and broker (n=${bare.n})`,
      figure: `p50 ${ms(bare.p50)}, p95 ${ms(bare.p95)}`,
    },
    ratioRow(
      `${name}: host tool call from a script, p50 (n=${call.n})`,
      ms(call.p50),
      call.p50 / bare.p50,
      most,
      'echo',
    ),
    { what: 'the same, p95', figure: ms(call.p95) },
  ]
}

/** Measures checks of scripts of two lengths, built from the solutions of the HumanEval example. */
async function checks(): Promise<Row[]> {
  const path = join(import.meta.dirname, '../examples/humaneval/humaneval.jsonl')
  const problems = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Problem)
  const source = problems.map(({ prompt, canonical_solution: solution }) => `${prompt}${solution}`).join('\n')
  const lines = source.split('\n')
  const engine = localEngine()
  const { spec } = resolveForBench()
  await using sandbox = await engine.create({ ...spec, checker: true })
  const rows: Row[] = []
  for (const [count, rounds, most] of [
    [100, 60, 5],
    [5000, 8, undefined],
  ] as const) {
    const script = wholeLines(lines, count)
    const times: number[] = []
    for (let n = 0; n < rounds + 3; n += 1) {
      const start = performance.now()
      await checkScript({ sandbox, script, policy: 'standard' })
      if (n >= 3) times.push(performance.now() - start)
      await pause(5) // meanwhile the sandbox forks its next child, as between runs
    }
    const { p50, p95 } = summarize(times)
    rows.push({
      what: `check of ${script.split('\n').length} lines, p50 (n=${times.length})`,
      figure: `${ms(p50)}, p95 ${ms(p95)}`,
      ...(most === undefined ? {} : { bound: `<= ${most} ms`, met: p50 <= most }),
    })
  }
  await sandbox.destroy()
  await engine.close()
  return rows
}

interface Problem {
  readonly prompt: string
  readonly canonical_solution: string
}

/** Returns at least `count` lines and ends before a definition or an import. Repeats the lines if there are too few. */
function wholeLines(lines: readonly string[], count: number): string {
  const many = Array.from({ length: Math.ceil(count / lines.length) }, () => lines).flat()
  let end = count
  while (end < many.length && !/^(def|from|import) /.test(many[end] ?? '')) end += 1
  return many.slice(0, end).join('\n')
}
