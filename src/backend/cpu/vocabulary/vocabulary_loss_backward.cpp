#include "backend/cpu/vocabulary/vocabulary_backward.h"

namespace thimble {

extern const CpuKernel cpu_vocabulary_loss_backward{
    "vocabulary_loss_backward",
    make_if_supported_where<CpuVocabularyLossBackward<true>, stageable_input>};

}  // namespace thimble
