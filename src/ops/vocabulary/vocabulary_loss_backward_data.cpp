// vocabulary_loss_backward_data(h [R,C], weight [V,C], targets i32 [R], normalizer [1], upstream [1])
//   -> (dh [, loss [1], lse [R], correct [1], nll [1]]); attrs of vocabulary_loss_backward, which
// this is without the gradient of the weight.
#include "ops/vocabulary/vocabulary_backward.h"

namespace thimble {

extern const OpDef op_vocabulary_loss_backward_data = VocabularyBackward<false>::record(
    "gradient of vocabulary_loss for its rows alone, and what it makes");

}  // namespace thimble
