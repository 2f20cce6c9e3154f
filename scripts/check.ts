/**
 * Runs all checks for a change: `npm run check`, or `npm run check -- test:all` for another rung of the tests. All steps
 * run, the tests last, so that their sum is the last line.
 */
import { spawnSync } from 'node:child_process'

const [rung = 'test'] = process.argv.slice(2)
/** npm scripts, cheapest first. */
const STEPS = ['format:check', 'lint', 'types', 'dead', 'package:check', rung]

const failed: string[] = []
for (const step of STEPS) {
  if (step === STEPS.at(-1) && failed.length > 0) console.error(`\nFAILED so far: ${failed.join(', ')}`)
  console.log(`\n── ${step} ${'─'.repeat(Math.max(0, 100 - step.length))}`)
  const run = spawnSync('npm', ['run', '--silent', step], { stdio: ['ignore', 'inherit', 'inherit'] })
  if (run.status !== 0) failed.push(step)
}
process.exitCode = failed.length > 0 ? 1 : 0
