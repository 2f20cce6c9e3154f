import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { createSandglass } from '../../src/index.ts'
import { type CustomerRow, summary, table } from './report.ts'
import { seed } from './seed.ts'
import { orderTools } from './tools.ts'

/**
 * A script that reads a real SQLite database and pays back, through three functions of this process: the database, its
 * file and its path stay here. Ends with 0 when the script gave its result.
 */
async function main(): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-orders-'))
  const database = seed(join(directory, 'shop.db'))
  try {
    process.stdout.write(table('Refunds before', refunds(database)))
    await using sandglass = await createSandglass()
    const result = await sandglass.run<CustomerRow[]>(readFileSync(new URL('report.py', import.meta.url), 'utf8'), {
      tools: orderTools(database),
      inputs: { limit_days: 10 },
      mode: 'plan',
      policy: 'standard',
    })
    process.stdout.write(table('Late orders', result.finalData ?? []))
    process.stdout.write(table('Refunds after', refunds(database)))
    process.stdout.write(`The script said\n  ${result.stdout}${summary(result)}`)
    if (!result.success) process.stderr.write(`${result.error}\n`)
    return result.success ? 0 : 1
  } finally {
    database.close()
    rmSync(directory, { recursive: true })
  }
}

function refunds(database: DatabaseSync): object[] {
  return database.prepare('SELECT order_id, cents, reason FROM refunds ORDER BY order_id').all()
}

process.exitCode = await main()
