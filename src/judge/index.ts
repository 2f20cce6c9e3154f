export { type Requester, askThread, type Judgement, MAX_ANSWER_CHARS } from './judge-thread.ts'
export { siblingModule } from '../support/index.ts'
