/**
 * A host whose limit of descriptors its workspace inherits. It starts more programs than that workspace has descriptors for, and
 * prints the codes of those that were refused, and the output of one that is started when the others have ended.
 */
import { createSandglass } from '../../src/index.ts'

await using sg = await createSandglass({ engine: 'local', poolSize: 0 })
const ws = await sg.workspace({ limits: { pids: 256 } })
const started = await Promise.allSettled(Array.from({ length: 40 }, () => ws.start('sleep', ['1000'])))
const refused = started.flatMap((one) => (one.status === 'rejected' ? [(one.reason as { code: string }).code] : []))
await Promise.all(started.flatMap((one) => (one.status === 'fulfilled' ? [one.value.close()] : [])))
const { stdout } = await ws.exec('echo', ['served'])
console.log(JSON.stringify({ refused: [...new Set(refused)], stdout }))
