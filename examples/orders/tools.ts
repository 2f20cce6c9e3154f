import type { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { defineTool, type Tool, ToolCallError } from '../../src/index.ts'

const Order = z
  .object({ id: z.string(), customer_id: z.string(), cents: z.int(), days_late: z.int() })
  .meta({ title: 'Order' })
const Customer = z.object({ id: z.string(), name: z.string(), tier: z.string() }).meta({ title: 'Customer' })

/** A script may read orders and customers, and pay back. It never sees the database. */
export function orderTools(database: DatabaseSync): Tool[] {
  const orders = database.prepare(`
    SELECT id, customer_id, cents, CAST(julianday(delivered) - julianday(promised) AS INTEGER) AS days_late
    FROM orders WHERE days_late >= ? ORDER BY id`)
  const customer = database.prepare('SELECT id, name, tier FROM customers WHERE id = ?')
  const price = database.prepare('SELECT cents FROM orders WHERE id = ?')
  const refunded = database.prepare('SELECT cents FROM refunds WHERE order_id = ?')
  const refund = database.prepare('INSERT INTO refunds VALUES (?, ?, ?)')
  return [
    defineTool({
      name: 'search_orders',
      description: 'Finds delivered orders, by id.',
      effect: 'read',
      input: z.object({ min_days_late: z.int().min(0).default(0).describe('0 finds those in time, too.') }),
      output: z.array(Order),
      execute: ({ min_days_late: days }) => orders.all(days) as z.input<typeof Order>[],
    }),
    defineTool({
      name: 'get_customer',
      description: 'A customer by id.',
      effect: 'read',
      input: z.object({ customer_id: z.string() }),
      output: Customer,
      execute({ customer_id: id }) {
        const found = customer.get(id)
        if (found === undefined) throw new ToolCallError('not_found', `there is no customer ${id}`)
        return found as z.input<typeof Customer>
      },
    }),
    defineTool({
      name: 'add_refund',
      description: 'Pays a part of an order back, once.',
      effect: 'write',
      maxCalls: 10,
      input: z.object({ order_id: z.string(), cents: z.int().min(1), reason: z.string().min(1) }),
      execute({ order_id: id, cents, reason }) {
        const order = price.get(id)
        if (order === undefined) throw new ToolCallError('not_found', `there is no order ${id}`)
        if (cents > Number(order['cents'])) throw new ToolCallError('too_much', `${id} cost ${String(order['cents'])}`)
        if (refunded.get(id) !== undefined) throw new ToolCallError('already_refunded', `${id} was refunded before`)
        refund.run(id, cents, reason)
        return { order_id: id, cents }
      },
    }),
  ]
}
