import { expect, test } from 'vitest'
import { ScriptExecutor, type ExecutionResult } from '../../../src/executor/index.ts'
import type { Ending } from '../../../src/sandbox/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'
import { FOREIGN_ID, OWN_ID } from '../../../campaigns/fuzz/corpus.ts'
import { checkEnding } from '../../../campaigns/fuzz/broker/sandbox-case.ts'
import { hostCase } from '../../../campaigns/fuzz/host/host-case.ts'
import { checkResult } from '../../../campaigns/fuzz/host/result-check.ts'
import { Random } from '../../support/random.ts'

const frame = (id: string, data: unknown): object => ({ type: 'final_result', execution_id: id, data })
const stream = Buffer.from(wireLines(frame(FOREIGN_ID, 'theirs'), frame(OWN_ID, 'mine')))

async function soundResult(): Promise<ExecutionResult> {
  const sandbox = replayChannel(stream)
  return new ScriptExecutor().run({ sandbox, script: 'x', executionId: OWN_ID })
}

test('a result of the run itself passes', async () => {
  const sound = await soundResult()
  expect(sound.finalData).toBe('mine')
  expect(() => checkResult(sound, stream)).not.toThrow()
})

test.each<[string, string, Partial<ExecutionResult>]>([
  ['data of another run', 'the result is in no frame of the run', { finalData: 'theirs' }],
  ['an undocumented status', 'the status done is undocumented', { status: 'done' as ExecutionResult['status'] }],
  [
    'a success that is a failure',
    'Expected values to be strictly deep-equal',
    { status: 'failed', errorKind: 'error', error: 'x' },
  ],
  [
    'an error kind of another status',
    'status completed must not have the error kind oom',
    { errorKind: 'oom', error: 'x' },
  ],
  ['a log that no frame has', 'logs: "x" is in no frame of the run', { logs: [{ level: 'info', message: 'x' }] }],
])('%s is noticed', async (_what, message, change) => {
  const sound = await soundResult()
  expect(() => checkResult({ ...sound, ...change } as ExecutionResult, stream)).toThrow(message)
})

const ENDING: Ending = { cause: 'exit', exitCode: 0, signal: null, by: 'harness' }

test.each<[string, Partial<Ending>]>([
  ['as it was asked to, without a word', {}],
  ['with one line', { exitCode: 1, message: 'the host sent an invalid request' }],
])('a sandbox may end %s', (_how, change) => {
  expect(() => checkEnding({ ...ENDING, ...change })).not.toThrow()
})

test.each<[string, Partial<Ending>, string]>([
  ['without a word, by a signal', { cause: 'signal', exitCode: null, signal: 'SIGKILL' }, 'it ended without a message'],
  ['without a word, with a code', { exitCode: 1, message: '' }, 'it ended without a message'],
  ['with two lines', { exitCode: 1, message: 'one\ntwo' }, 'more than one line'],
  ['with a traceback', { exitCode: 1, message: 'Traceback (most recent call last)' }, 'Traceback'],
])('a sandbox that ends %s is noticed', (_how, change, problem) => {
  expect(() => checkEnding({ ...ENDING, ...change })).toThrow(problem)
})

test('a case is always the same for one seed, and different for another', () => {
  const bytesOf = (seed: number, number: number): string =>
    Buffer.concat(hostCase(Random.ofCase(seed, 'host', number)).pieces).toString('hex')
  const numbers = Array.from({ length: 50 }, (_, number) => number)
  expect(numbers.map((number) => bytesOf(1, number))).toEqual(numbers.map((number) => bytesOf(1, number)))
  expect(numbers.map((number) => bytesOf(2, number))).not.toEqual(numbers.map((number) => bytesOf(1, number)))
})
