export { type Requester, askJudge, type Judgement, MAX_ANSWER_CHARS } from './judge-process.ts'
export { siblingModule } from '../support/index.ts'
