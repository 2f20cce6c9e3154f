/** A vitest of the tree in which it is started: runs the tests that its parent names, one request after the other (lane.ts). */
import { resolve } from 'node:path'
import { createVitest } from 'vitest/node'
import type { LaneMessage, LaneRequest } from './lane.ts'
import { PROJECTS, type RanTest } from './trial.ts'

let ran: RanTest[] = []
const vitest = await createVitest('test', {
  watch: false,
  project: [...PROJECTS],
  reporters: [
    'dot',
    {
      // The results of this run alone: a worker that died has none.
      onTestCaseResult(test) {
        const { state, errors } = test.result()
        if (state !== 'passed' && state !== 'failed') return
        const why = errors?.map(({ stack, message }) => stack ?? message).join('\n') ?? ''
        ran.push({ file: test.module.moduleId, name: test.fullName, passed: state === 'passed', why })
      },
    },
  ],
})
const end = (): void => void vitest.exit(true)
process.once('disconnect', end)
process.once('SIGTERM', end)

await vitest.standalone()
// The global setup probes the engine, once for all requests, in a tree without patches.
await vitest.runTestSpecifications([])
process.on('message', (request: LaneRequest) => void answer(request))
tell({ ran: [] })

async function answer({ files, pattern, patched }: LaneRequest): Promise<void> {
  ran = []
  for (const file of patched) vitest.invalidateFile(resolve(file))
  vitest.setGlobalTestNamePattern(new RegExp(pattern))
  await vitest.runTestSpecifications(await vitest.globTestSpecifications([...files]))
  tell({ ran })
}

function tell(message: LaneMessage): void {
  process.send?.(message)
}
