import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { chatCompletions, createSandglass, type ModelInput, replayModel } from '../../src/index.ts'
import { course, summary, table } from './report.ts'
import { seed } from './seed.ts'
import { orderTools } from './tools.ts'

const TASK = `For each customer with late orders: how many are late, and how much was refunded in cents.
Refund a tenth of the price of each order that was more than limit_days days late. Sort by name.`

const Answer = z.array(z.object({ customer: z.string(), late: z.int(), refunded: z.int() }))

/**
 * A model solves a task with a real SQLite database through three functions of this process: the database, its file and
 * its path stay here. Exits with 0 when the task is solved.
 */
async function main(): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-orders-'))
  const database = seed(join(directory, 'shop.db'))
  try {
    process.stdout.write(`Task\n  ${TASK.replaceAll('\n', '\n  ')}\n${table('Refunds before', refunds(database))}`)
    await using sandglass = await createSandglass()
    const result = await sandglass.solve(TASK, {
      model: model(process.env),
      tools: orderTools(database),
      inputs: { limit_days: 10 },
      output: Answer,
    })
    process.stdout.write(course(result.record))
    process.stdout.write(table('Answer', result.finalData ?? []))
    process.stdout.write(`${table('Refunds after', refunds(database))}${summary(result.record)}`)
    if (!result.success) process.stderr.write(`${result.error}\n`)
    return result.success ? 0 : 1
  } finally {
    database.close()
    rmSync(directory, { recursive: true })
  }
}

/** The OpenAI-compatible model that MODEL names, else the recorded answers beside this file, two of them with a mistake. */
function model({ MODEL, OPENAI_BASE_URL, OPENAI_API_KEY }: NodeJS.ProcessEnv): ModelInput {
  if (MODEL === undefined)
    return replayModel(fileURLToPath(new URL('answers.jsonl', import.meta.url)), { match: 'order' })
  const url = OPENAI_BASE_URL ?? 'https://api.openai.com/v1'
  return chatCompletions({ url, model: MODEL, apiKey: OPENAI_API_KEY })
}

function refunds(database: DatabaseSync): object[] {
  return database.prepare('SELECT order_id, cents, reason FROM refunds ORDER BY order_id').all()
}

process.exitCode = await main()
