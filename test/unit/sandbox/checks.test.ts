import { describe, expect, test } from 'vitest'
import { findOpenDescriptors } from '../../../src/sandbox/index.ts'

describe('the broker’s descriptors', () => {
  const open = ["the broker's descriptors are open to scripts"]
  const input = ["the broker's input is open to scripts"]
  test.each([
    ['hidden', false, { descriptors_hidden: true }, []],
    ['open', false, { descriptors_hidden: false }, open],
    ['not reported', false, {}, open],
    ['open, with sealed output and an input that takes no writes', true, { input_protected: true }, []],
    [
      'open, with sealed output and an input that takes writes',
      true,
      { descriptors_hidden: false, input_protected: false },
      input,
    ],
    ['not reported, with sealed output', true, {}, input],
  ])('%s', (_, sealed, checks, found) => {
    expect(findOpenDescriptors(checks, sealed)).toEqual(found)
  })
})
