/**
 * Runs all checks for a change: `npm run check`, or `npm run check -- test:all` for another rung of the tests. All steps
 * run, two at a time, and then the tests alone, so that their sum is the last line. `npm run check -- lint types` runs only
 * these steps, and no tests.
 */
import { spawn, spawnSync } from 'node:child_process'

/** npm scripts that need no other's result, cheapest first. */
const STEPS = ['format:check', 'lint', 'types', 'dead', 'package:check']
/** Each is idle for some of its time, and on one processor for most of it. */
const MAX_CONCURRENT = 2

const failed = new Set<string>()

/** Runs steps, and prints the output of each when it ends. */
async function runSteps(steps: readonly string[]): Promise<void> {
  const waiting = steps.values()
  const runInTurn = async (): Promise<void> => {
    for (const step of waiting) {
      const { output, passed } = await runStep(step)
      console.log(`${headingOf(step)}\n${output}`)
      if (!passed) failed.add(step)
    }
  }
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, runInTurn))
}

function runStep(step: string): Promise<{ output: string; passed: boolean }> {
  const run = spawn('npm', ['run', '--silent', step], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [run.stdout, run.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  return new Promise((resolve) => {
    run.once('error', (error) => resolve({ output: String(error), passed: false }))
    run.once('close', (code) => resolve({ output, passed: code === 0 }))
  })
}

function runTests(rung: string): void {
  if (failed.size > 0) console.error(`\nFAILED so far: ${namesOfFailed()}`)
  console.log(headingOf(rung))
  const run = spawnSync('npm', ['run', '--silent', rung], { stdio: ['ignore', 'inherit', 'inherit'] })
  if (run.status !== 0) failed.add(rung)
}

function namesOfFailed(): string {
  return STEPS.filter((step) => failed.has(step)).join(', ')
}

function headingOf(step: string): string {
  return `\n── ${step} ${'─'.repeat(Math.max(0, 100 - step.length))}`
}

const args = process.argv.slice(2)
const chosen = STEPS.filter((step) => args.includes(step))
const [rung = chosen.length === 0 ? 'test' : undefined] = args.filter((arg) => !STEPS.includes(arg))
if (args.filter((arg) => !STEPS.includes(arg)).length > 1)
  throw new TypeError(`${args.join(' ')}: name one rung of the tests, and steps of ${STEPS.join(', ')}`)
await runSteps(chosen.length === 0 ? STEPS : chosen)
if (rung !== undefined) runTests(rung)
else if (failed.size > 0) console.error(`\nFAILED: ${namesOfFailed()}`)
process.exitCode = failed.size > 0 ? 1 : 0
