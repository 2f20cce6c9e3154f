/**
 * A host with three activities in a workspace, which its test kills: `MARK [OPTIONS]`, the options of the Sandglass as JSON.
 * Prints a line when they run.
 */
import { createSandglass, type SandglassOptions } from '../../src/index.ts'

const sg = await createSandglass({
  engine: 'local',
  ...(JSON.parse(process.argv[3] ?? '{}') as SandglassOptions),
  poolSize: 0,
})
const ws = await sg.workspace()
const mark = process.argv[2] ?? ''
await ws.start('sleep', [mark])
await ws.start('sh', ['-c', `trap "" TERM HUP; setsid sleep ${mark} & sleep ${mark}`], { tty: true })
const begun = Promise.withResolvers<void>()
void ws.run(`import subprocess\nprint("x", flush=True)\nsubprocess.run(["sleep", "${mark}"])`, {
  limits: { executionTimeoutSec: 300 },
  onEvent: ({ type }) => type === 'stdout' && begun.resolve(),
})
await begun.promise
console.log('running')
