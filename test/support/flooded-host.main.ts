/**
 * A host that a program in a workspace floods: `SCRIPT [OPTIONS]`, a script of bash and the options of the Sandglass as JSON. Prints,
 * as JSON, the bytes that the program wrote, the length of what was kept, and the MiB by which the memory of this process grew.
 */
import { createSandglass, type SandglassOptions } from '../../src/index.ts'
import { watchGrowth } from './memory.ts'

const [, , script = '', options = '{}'] = process.argv
await using sg = await createSandglass({ ...(JSON.parse(options) as SandglassOptions), poolSize: 0 })
const ws = await sg.workspace()
await ws.exec('bash', ['-c', 'seq 100000'])
const grown = watchGrowth()
const { stdout, stdoutBytes } = await ws.exec('bash', ['-c', script])
console.log(JSON.stringify({ stdoutBytes, kept: stdout.length, grownMib: grown() }))
