// vocabulary_loss: chunk by chunk.
#include "backend/cuda/vocabulary/vocabulary_chunks.cuh"

namespace thimble {
namespace {

class VocabularyLoss final : public Kernel {
 public:
  VocabularyLoss(const Signature& s, CudaDevice& device) : chunks_(s, device) {
    name = "cublaslt, and own";
    workspace = chunks_.room() + chunks_.product_scratch();
  }
  void run(const KernelArgs& args) override {
    std::byte* const scratch = args.workspace + chunks_.room().count;
    chunks_.begin(args);
    for (int64_t i = 0; i < chunks_.count(); ++i) {
      chunks_.run(args, i, args.outputs[kOfLoss.lse()].as<float>(), true, nullptr, scratch);
    }
    chunks_.add_up(args, kOfLoss.sums());
  }

 private:
  const VocabularyChunks chunks_;
};

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  if (!on_device(s.inputs[0].dtype) || s.inputs[0].elements() == 0) return nullptr;
  return std::make_unique<VocabularyLoss>(s, device);
}

}  // namespace

extern const CudaKernel cuda_vocabulary_loss{"vocabulary_loss", make};

}  // namespace thimble
