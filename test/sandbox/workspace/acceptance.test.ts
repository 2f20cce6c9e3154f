import { describe } from 'vitest'
import { workspaceCases } from '../../../campaigns/adversarial/suites/workspace.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('on the local engine', () => {
  workspaceCases({ engine: 'local' })
})
