import { readFileSync } from 'node:fs'
import { createSandglass, type RunEvent, type Sandglass } from '../../src/index.ts'
import { planetTools } from './tools.ts'

/** A script with a mistake that a model could make. The checker finds it before anything runs. */
const WITH_A_MISTAKE =
  'rows = planets\nfar = [row for row in rows if light_minute(row.distance_million_km) > 60]\nemit_result(far)'

/**
 * A tour of Sandglass on the engine that this machine has. Exits with 0 when the script gives its result.
 */
async function main(): Promise<number> {
  await using sandglass = await createSandglass()
  heading(`Engine ${sandglass.engine}`)
  for (const { engine, code } of sandglass.passedOver) line(`passed over: ${engine} (${code})`)
  await checkFirst(sandglass)
  return await runIt(sandglass) // awaited here, so that the sandbox outlives the run
}

async function checkFirst(sandglass: Sandglass): Promise<void> {
  heading('A script with a mistake is sent back before it runs')
  const { violations } = await sandglass.check(WITH_A_MISTAKE, { tools: planetTools() })
  for (const { line: number, message, hint } of violations) {
    line(`line ${number}: ${message}`)
    if (hint !== '') line(`  hint: ${hint}`)
  }
}

async function runIt(sandglass: Sandglass): Promise<number> {
  heading('Another one runs, and calls functions of this process')
  const script = readFileSync(new URL('kepler.py', import.meta.url), 'utf8')
  const options = { tools: planetTools(), mode: 'plan', policy: 'standard' } as const
  for await (const event of sandglass.stream(script, options)) {
    if (event.type === 'result') return tellResult(event)
    tellEvent(event)
  }
  return 1
}

function tellEvent(event: Exclude<RunEvent, { type: 'result' }>): void {
  if (event.type === 'log') line(`log           ${event.message}`)
  else if (event.type === 'intermediate') line(`intermediate  ${event.label.padEnd(8)} ${JSON.stringify(event.data)}`)
  else if (event.type === 'stdout') line(`stdout        ${event.text.trimEnd()}`)
}

function tellResult({ result }: Extract<RunEvent, { type: 'result' }>): number {
  const { sandbox } = result
  heading(`${result.status} after ${result.durationMs.toFixed(0)} ms`)
  line(`result        ${JSON.stringify(result.finalData)}`)
  line(`tool calls    ${result.toolCalls.map(({ name, ok }) => `${name} ${ok ? 'ok' : 'failed'}`).join(', ')}`)
  heading('What held it')
  line(`level         ${sandbox.level}, Python ${sandbox.python}`)
  line(`limits        ${sandbox.limitsEnforced.join(', ')}`)
  line(`network       ${sandbox.network}`)
  if (!result.success) process.stderr.write(`${result.error}\n`)
  return result.success ? 0 : 1
}

function heading(text: string): void {
  process.stdout.write(`\n${text}\n`)
}

function line(text: string): void {
  process.stdout.write(`  ${text}\n`)
}

process.exitCode = await main()
