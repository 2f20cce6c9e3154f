/** An owner of a workspace, which renews its lease until it is killed: `leasing-owner.main.ts STORE ID LEASE_MS`. Says what its clock shows. */
import { WorkspaceLease } from '../../src/persistence/index.ts'
import { storeInDirectory } from '../../src/stores/index.ts'

const [directory = '', id = '', leaseMs = ''] = process.argv.slice(2)
const lease = await WorkspaceLease.acquire(storeInDirectory(directory), id, { leaseMs: Number(leaseMs) })
console.log(Date.now())
setInterval(() => {
  if (lease.endedBy !== undefined) throw lease.endedBy
}, 100)
