import { afterAll, beforeAll, describe } from 'vitest'
import { storeInS3, type Store } from '../../../src/artifacts/index.ts'
import { createSandglass, type Sandglass } from '../../../src/sandglass.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { testPersistence } from '../../support/persistence-rules.ts'
import { skipFor } from '../../support/required.ts'
import { findS3Server, type S3Server, startS3Server } from '../../support/s3-server.ts'

const { skip } = await requireLocalEngine()
const program = findS3Server()
if (program === undefined) skipFor('s3', "there is no moto_server on PATH (pip install 'moto[s3]' flask flask-cors)")

describe.skipIf(skip || program === undefined)('with a store in S3', () => {
  let sg: Sandglass
  let server: S3Server
  let store: Store
  beforeAll(async () => {
    server = await startS3Server(program ?? '')
    store = storeInS3(server.options)
    sg = await createSandglass({ engine: 'local', poolSize: 0 })
  }, 60_000)
  afterAll(async () => {
    await sg.close()
    await server[Symbol.asyncDispose]()
  })

  testPersistence({
    get sg() {
      return sg
    },
    get store() {
      return store
    },
  })
})
