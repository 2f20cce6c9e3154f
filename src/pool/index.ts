export type { Lease } from './lease.ts'
export type { CheckoutOptions, PoolOptions } from './options.ts'
export { SandboxPool } from './sandbox-pool.ts'
export type { PoolStats } from './stats.ts'
