import { machine } from '../test/support/machine.ts'
import { artifacts } from './artifacts.ts'
import { batch } from './batch.ts'
import { budget } from './budget.ts'
import { cellBudget } from './cell-budget.ts'
import { codeAgent } from './code-agent.ts'
import { endurance } from './endurance.ts'
import { engines } from './engines.ts'
import { environments } from './environments.ts'
import { idleMemory } from './idle-memory.ts'
import { latency } from './latency.ts'
import { persistence } from './persistence.ts'
import { preloading } from './preload.ts'
import { orchestrator } from './orchestrator.ts'
import { type Row, table } from './row.ts'
import { localEngine } from './subject.ts'
import { sessions } from './sessions.ts'
import { toolCalls } from './tool-calls.ts'
import { toolPreparing } from './tools.ts'
import { workspaces } from './workspaces.ts'

/**
 * Prints the tables of docs/performance.md: `npm run bench`. `-- --rounds N` sets the number of warm runs (default: 500).
 * `-- --only NAMES` runs some steps, such as `persistence,artifacts`. `-- --picture FILE` draws
 * the budget of a run as SVG.
 */
async function main(): Promise<void> {
  const rounds = Number(flag('--rounds') ?? 500)
  const only = flag('--only')?.split(',')
  const engine = localEngine()
  const { usable, probes, reasons } = await engine.report()
  await engine.close()
  if (!usable) throw new Error(reasons.map((reason) => `${reason.message}: ${reason.remedy}`).join('\n'))
  const steps: [string, () => Promise<Row[]>][] = [
    ['latency', () => latency(String(probes['python']), String(probes['bwrap']), rounds)],
    ['batch', () => batch(String(probes['python']))],
    ['endurance', endurance],
    ['memory', idleMemory],
    ['preload', preloading],
    ['environments', environments],
    ['workspaces', workspaces],
    ['sessions', sessions],
    ['persistence', persistence],
    ['artifacts', artifacts],
    ['tool calls', toolCalls],
    ['code agent', codeAgent],
    ['orchestrator', () => orchestrator(String(probes['python']), rounds)],
    ['tools', async () => Promise.resolve(toolPreparing())],
  ]
  const names = [...steps.map(([name]) => name), 'budget', 'engines']
  const unknown = only?.find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`--only: there is no step "${unknown}"; they are ${names.join(', ')}`)
  const rows: Row[] = []
  for (const [name, step] of steps.filter(([each]) => only?.includes(each) ?? true)) {
    process.stderr.write(`${name} …\n`)
    rows.push(...(await step()))
  }
  process.stdout.write(
    `Machine: ${machine()}\nVersions: Node ${process.version}, Python ${String(probes['python_version'])}\n`,
  )
  if (rows.length > 0) process.stdout.write(`\n${table(rows)}\n`)
  if (only?.includes('budget') ?? true) {
    process.stderr.write('budget …\n')
    const run = await budget(String(probes['python']), rounds, flag('--picture'))
    for (const part of [...run, await cellBudget()]) {
      process.stdout.write(`\n${table(part.rows, part.titles)}\n`)
      rows.push(...part.rows)
    }
  }
  if (only?.includes('engines') ?? true) {
    process.stderr.write('engines …\n')
    const compared = await engines(rounds)
    process.stdout.write(`\n${table(compared.rows, compared.titles)}\n`)
    rows.push(...compared.rows)
  }
  if (rows.some((row) => row.met === false)) process.stderr.write('a target was not met\n')
}

function flag(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at === -1 ? undefined : process.argv[at + 1]
}

await main()
