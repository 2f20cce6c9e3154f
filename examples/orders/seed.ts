import { DatabaseSync } from 'node:sqlite'

const CUSTOMERS = [
  ['C-1', 'Aydin Ltd', 'gold'],
  ['C-2', 'Brandt & Co', 'standard'],
  ['C-3', 'Costa', 'standard'],
] as const

/** Id, customer, price in cents, promised and delivered. */
const ORDERS = [
  ['A-1', 'C-1', 12_000, '2026-03-02', '2026-03-02'],
  ['A-2', 'C-1', 45_000, '2026-03-04', '2026-03-19'],
  ['A-3', 'C-2', 8000, '2026-03-05', '2026-03-08'],
  ['A-4', 'C-2', 99_000, '2026-03-06', '2026-03-18'],
  ['A-5', 'C-3', 3000, '2026-03-09', '2026-03-09'],
  ['A-6', 'C-1', 25_000, '2026-03-10', '2026-03-11'],
  ['A-7', 'C-3', 60_000, '2026-03-12', '2026-03-12'],
  ['A-8', 'C-2', 15_000, '2026-03-13', '2026-03-24'],
] as const

/** Makes the database of a small shop. The caller closes it. */
export function seed(path: string): DatabaseSync {
  const database = new DatabaseSync(path)
  database.exec(`
    CREATE TABLE customers (id TEXT PRIMARY KEY, name TEXT NOT NULL, tier TEXT NOT NULL);
    CREATE TABLE orders (id TEXT PRIMARY KEY, customer_id TEXT NOT NULL REFERENCES customers, cents INTEGER NOT NULL,
      promised TEXT NOT NULL, delivered TEXT NOT NULL);
    CREATE TABLE refunds (order_id TEXT PRIMARY KEY REFERENCES orders, cents INTEGER NOT NULL, reason TEXT NOT NULL);
  `)
  const customer = database.prepare('INSERT INTO customers VALUES (?, ?, ?)')
  for (const row of CUSTOMERS) customer.run(...row)
  const order = database.prepare('INSERT INTO orders VALUES (?, ?, ?, ?, ?)')
  for (const row of ORDERS) order.run(...row)
  return database
}
