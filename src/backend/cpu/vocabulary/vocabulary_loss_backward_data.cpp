#include "backend/cpu/vocabulary/vocabulary_backward.h"

namespace thimble {

extern const CpuKernel cpu_vocabulary_loss_backward_data{
    "vocabulary_loss_backward_data",
    make_if_supported_where<CpuVocabularyLossBackward<false>, stageable_input>};

}  // namespace thimble
