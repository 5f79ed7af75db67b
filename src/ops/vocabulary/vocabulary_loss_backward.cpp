// vocabulary_loss_backward(h [R,C], weight [V,C], targets i32 [R], normalizer [1], upstream [1])
//   -> (dh, dweight [, loss [1], lse [R], correct [1], nll [1]]); attrs of vocabulary_loss, and
// takes_over (0; 1: the results of vocabulary_loss exist).
// Makes the logits of rows_at_once rows again, and of them what vocabulary_loss makes; then, in their
// place, their gradients:
//   dlogits = upstream * normalizer * (softmax(logits) - target), 0 in rows that do not count
//   dweight += dlogits' h, dh = dlogits weight
// Rows of dh are written behind the last use of the same rows of h.
#include "ops/vocabulary/vocabulary_backward.h"

namespace thimble {

extern const OpDef op_vocabulary_loss_backward =
    VocabularyBackward<true>::record("gradient of vocabulary_loss, and what it makes");

}  // namespace thimble
