import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { readRequests } from './problems.ts'
import { type Answer, report } from './report.ts'

/**
 * Runs the 164 problems of HumanEval, each solution with its own test, through `sandglass batch`: one fresh process in a
 * sandbox per script. Exits with 0 when all pass.
 */
async function main(): Promise<number> {
  const requests = readRequests(new URL('humaneval.jsonl', import.meta.url))
  const cli = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const started = performance.now()
  const batch = spawn(process.execPath, [cli, 'batch', '--concurrency', '2'], { stdio: ['pipe', 'pipe', 'inherit'] })
  batch.stdin.on('error', () => {}) // if batch exits early, it has written the reason to stderr
  batch.stdin.end(requests.map((request) => `${JSON.stringify(request)}\n`).join(''))

  const answers: Answer[] = []
  for await (const line of createInterface({ input: batch.stdout })) {
    const answer = JSON.parse(line) as Answer
    if (answer.id === undefined) continue
    answers.push(answer)
    showProgress(answers, requests.length)
  }
  const [code] = (await (batch.exitCode === null ? once(batch, 'exit') : [batch.exitCode])) as [number | null]
  if (answers.length < requests.length) {
    process.stderr.write(`\nonly ${answers.length} of ${requests.length} were answered (batch ended with ${code})\n`)
    return code === null || code === 0 ? 1 : code
  }
  process.stdout.write(report(answers, performance.now() - started))
  return answers.every((answer) => answer.success) ? 0 : 1
}

/** Shows the progress: one line that is redrawn on a terminal, a few lines elsewhere. */
function showProgress(answers: readonly Answer[], total: number): void {
  const failed = answers.filter((answer) => !answer.success).length
  const text = `${answers.length}/${total} problems, ${failed} failed`
  if (process.stderr.isTTY) process.stderr.write(`\r${text}${answers.length === total ? '\n' : ''}`)
  else if (answers.length % 41 === 0 || answers.length === total) process.stderr.write(`${text}\n`)
}

process.exitCode = await main()
