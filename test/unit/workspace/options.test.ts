import { expect, test } from 'vitest'
import { checkWorkspaceOptions } from '../../../src/options/index.ts'

test('a disk that nothing bounds is refused with the reason, and so is a place that does not exist', () => {
  expect(() => checkWorkspaceOptions({ disk: 'memory' })).not.toThrow()
  expect(() => checkWorkspaceOptions({ disk: 'directory' })).toThrow(
    expect.objectContaining({
      code: 'limit_not_enforceable',
      message: expect.stringContaining('no engine can bound the size of a directory') as string,
    }) as Error,
  )
  expect(() => checkWorkspaceOptions({ disk: 'ssd' as never })).toThrow('"ssd"')
})
