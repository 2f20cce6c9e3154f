import { dockerEngine } from '../../../src/engines/docker/index.ts'
import type { Order } from './child-host.ts'

const order = JSON.parse(process.argv[2] ?? '') as Order
if (order.uid !== undefined) {
  await import('dockerode') // the files of this repository may be shut to that user
  process.setgroups?.([])
  process.setgid?.(order.uid)
  process.setuid?.(order.uid)
}
const engine = dockerEngine(order.engine)
console.log(JSON.stringify(await engine.report()))
await engine.close()
