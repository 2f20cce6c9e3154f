import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requireLocalEngine } from '../local-engine.ts'

const { skip } = await requireLocalEngine()
const MAIN = join(import.meta.dirname, '../../examples/orders/main.ts')

test.skipIf(skip)('the example orders reads a database and changes it through its tools alone', () => {
  const output = execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN], { encoding: 'utf8' })
  expect(output.replace(/\d+\.\d ms/, '0.0 ms').replace(/sandbox {5}.*/, 'sandbox     local')).toBe(`Refunds before
  none
Late orders
  customer     late  worst  refunded
  Aydin Ltd    2     15     4500
  Brandt & Co  3     12     11400
Refunds after
  order_id  cents  reason
  A-2       4500   15 days late
  A-4       9900   12 days late
  A-8       1500   11 days late
The script said
  already_refunded: A-2 was refunded before
Run
  status      completed
  tool calls  search_orders 1, get_customer 2, add_refund 4
  refused     1
  time        0.0 ms
  sandbox     local
`)
})
