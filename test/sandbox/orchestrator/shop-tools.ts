import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineTool, type JsonSchemaObject, type Tool } from '../../../src/index.ts'

interface ToolEntry {
  readonly name: string
  readonly description: string
  readonly input: JsonSchemaObject
  readonly output: JsonSchemaObject
}

const LISTED = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../data/mistakes/tools.json'), 'utf8'),
) as ToolEntry[]

const ORDERS = ['O-1', 'O-2', 'O-3'].map((id, index) => ({
  id,
  customer_id: 'C-1042',
  sku: ['A-100', 'A-200', 'B-050'][index] ?? 'A-100',
  quantity: index + 1,
  total: 1500.5 * (index + 1),
  region: ['north', 'south', 'north'][index] ?? 'north',
  due: index === 2 ? null : '2026-01-15',
}))

const ANSWERS: Readonly<Record<string, (input: Readonly<Record<string, unknown>>) => unknown>> = {
  search_orders: ({ status, limit }) => ORDERS.map((order) => ({ ...order, status })).slice(0, Number(limit)),
  get_customer: ({ customer_id: id }) => ({ id, name: 'Ada', email: 'ada@example.com', tier: 'gold', balance: -12.5 }),
  count_orders: ({ region }) => (region === 'south' ? 1 : 120),
  convert_currency: ({ amount }) => Number(amount) * 1.1,
  send_email: () => ({ message_id: 'M-1', accepted: true }),
  list_regions: () => ['north', 'south'],
  create_refund: ({ amount }) => ({ refund_id: 'R-1', amount, status: 'booked' }),
  get_price: () => 19.9,
}

/** The tools of `test/data/mistakes/tools.json` with answers that fit their schemas. */
export const shopTools: readonly Tool[] = LISTED.map(({ name, description, input, output }) =>
  defineTool({
    name,
    description,
    input,
    output,
    effect: 'read',
    execute: (given) => ANSWERS[name]?.(given),
  }),
)
