import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { createArtifactService, storeInDirectory } from '../../src/artifacts/index.ts'
import { createSandglass, type Sandglass, type Workspace } from '../../src/index.ts'

const STORE = resolve('report-store')
const SESSION = { sessionId: 'report' }
const CLEAN = 'out/orders-clean.csv'
const CHART = 'out/revenue.png'
/** Longer than the 30 s for which a killed owner keeps its workspace. */
const WAIT_SEC = 60

/**
 * Cleans a CSV and draws a chart of it in a workspace that lasts, and saves both as artifacts in `report-store`. The first process is killed
 * while it draws; the second one finds the clean CSV and goes on. `--engine NAME` chooses the engine. Exits with 0 when both are saved.
 */
async function main(): Promise<number> {
  if (process.argv.includes('--until-killed')) return work()
  console.log('a first process begins')
  await killWhileDrawing()
  console.log('it was killed; a second one goes on')
  return work()
}

/** Starts this program again and kills it when its script says that it draws. */
async function killWhileDrawing(): Promise<void> {
  const args = [...process.execArgv, import.meta.filename, ...process.argv.slice(2), '--until-killed']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface({ input: child.stdout })) {
    console.log(`  ${line}`)
    if (line === 'drawing') child.kill('SIGKILL')
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

async function work(): Promise<number> {
  const at = process.argv.indexOf('--engine')
  const engine = (at === -1 ? 'auto' : (process.argv[at + 1] ?? 'auto')) as 'auto'
  const store = storeInDirectory(STORE)
  await using sandglass = await createSandglass({ engine, dependencies: ['pandas>=2', 'matplotlib'], poolSize: 0 })
  await using workspace = await sandglass.workspace({ persist: 'report', store, waitSec: WAIT_SEC })
  if (await has(workspace, CLEAN)) console.log(`${CLEAN} is there from before`)
  else {
    await workspace.put({ 'in/orders.csv': { content: readFileSync(join(import.meta.dirname, 'orders.csv')) } })
    if (!(await run(sandglass, workspace, 'clean.py'))) return 1
  }
  if (!(await run(sandglass, workspace, 'chart.py'))) return 1
  const artifacts = createArtifactService(store)
  for (const path of [CLEAN, CHART]) {
    const { name, version, size } = await artifacts.save(path, workspace.read(path), { session: SESSION })
    console.log(`saved ${name}@${version}, ${size} bytes`)
  }
  await workspace.remove('out', { recursive: true }) // the next report begins anew
  console.log(`npx sandglass artifacts get ${CHART} --save revenue.png --session report --store ${STORE}`)
  return 0
}

/** Runs a script of this directory, and shows what it says. */
async function run(sandglass: Sandglass, workspace: Workspace, name: string): Promise<boolean> {
  const began = performance.now()
  const script = readFileSync(join(import.meta.dirname, name), 'utf8')
  for await (const event of sandglass.stream(script, { workspace })) {
    if (event.type === 'stdout') process.stdout.write(event.text)
    if (event.type !== 'result') continue
    const { success, finalData, error, traceback } = event.result
    console.log(
      `${name}: ${((performance.now() - began) / 1000).toFixed(2)} s`,
      success ? finalData : (traceback ?? error),
    )
    return success
  }
  return false
}

async function has(workspace: Workspace, path: string): Promise<boolean> {
  for await (const entry of workspace.collect(path)) if (entry.path === path) return true
  return false
}

process.exitCode = await main()
