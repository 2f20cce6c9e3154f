import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readOptions } from './options.ts'
import { pictureOf } from './picture.ts'
import { lineOf } from './sample.ts'
import { soak } from './soak.ts'
import { describeGrowth } from './summary.ts'

/**
 * `npm run soak -- --minutes N --engine local|docker|pyodide [--concurrency C] [--seed S] [--every SECONDS]
 * [--kinds PATTERN] [--rest SECONDS] [--out DIR] [--picture FILE.svg]`: runs mixed scripts for N minutes and prints a line each minute. The exit code is 1 when anything was left,
 * memory grew, or an outcome was unexpected.
 */
async function main(): Promise<void> {
  const { out, picture, ...options } = readOptions(process.argv.slice(2))
  mkdirSync(out, { recursive: true })
  const samples = join(out, 'samples.jsonl')
  writeFileSync(samples, '')
  const say = (line: string): void => void process.stdout.write(`${line}\n`)
  say(`soak of ${options.engine}: ${options.minutes} min, ${options.concurrency} at once, seed ${options.seed}, ${out}`)
  const summary = await soak(options, {
    onSample(sample) {
      say(lineOf(sample))
      appendFileSync(samples, `${JSON.stringify(sample)}\n`)
    },
    onUnexpected: ({ kind, said }) => say(`UNEXPECTED ${kind}: ${said}`),
    onLeak: ({ kind, what }) => say(`LEAK ${kind}: ${what}`),
  })
  writeFileSync(join(out, 'summary.json'), `${JSON.stringify(summary, undefined, 2)}\n`)
  if (picture !== undefined) writeFileSync(picture, pictureOf(summary))
  say(`${summary.runs} runs in ${summary.sandboxesMade} sandboxes: ${JSON.stringify(summary.runsByKind)}`)
  say(describeGrowth('held', summary.growth.held))
  say(describeGrowth('rss', summary.growth.rss))
  for (const problem of summary.problems) say(`NOT AS IT MUST BE: ${problem}`)
  if (summary.problems.length === 0) say('no leak, no growth, nothing unexpected')
  process.exitCode = summary.problems.length === 0 ? 0 : 1
}

await main()
