import { describe } from 'vitest'
import { storeInMemory } from '../../../src/stores/index.ts'
import { describeStore } from '../../support/store-rules.ts'

describe('the store in memory', () => {
  describeStore(storeInMemory)
})
