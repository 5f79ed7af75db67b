// softmax_cross_entropy: a warp or a block per row.
#include "backend/cuda/reduce/row_group.cuh"
#include "backend/cuda/reduce/scalar_sums.cuh"

namespace thimble {
namespace {

struct Settings {
  int64_t rows;
  int classes;
  int64_t ignored;
  float spread, on_label;  // of the target: on every class, and on the label on top
};

// A row's loss is its log-sum-exp minus the expected logit, both counted from the largest logit.
template <class T, int kThreads>
__global__ void __launch_bounds__(kRowThreads)
    losses(const T* logits, const int32_t* labels, float* lse, Settings s, double* partial,
           ScalarOutput out) {
  const RowGroup<kThreads> group;
  double loss = 0;
  for (int64_t r = group.first_row; r < s.rows; r += group.rows_apart) {
    const T* const row = logits + r * s.classes;
    float largest = widen(row[0]);
    for (int c = group.lane; c < s.classes; c += kThreads) largest = fmaxf(largest, widen(row[c]));
    largest = group.largest(largest);
    float sum = 0, all = 0;
    for (int c = group.lane; c < s.classes; c += kThreads) {
      const float logit = widen(row[c]) - largest;
      sum += expf(logit);
      if (s.spread != 0) all += logit;
    }
    sum = group.sum(sum);
    all = group.sum(all);
    if (group.lane != 0) continue;
    const float log_sum = logf(sum);
    lse[r] = largest + log_sum;
    const int32_t label = labels[r];
    if (label == s.ignored || label < 0 || label >= s.classes) continue;
    float expected = 0;
    if (s.spread != 0) expected += s.spread * all;
    if (s.on_label != 0) expected += s.on_label * (widen(row[label]) - largest);
    loss += static_cast<double>(log_sum - expected);
  }
  finish_block(loss, partial, out);
}

std::unique_ptr<Kernel> make(const Signature& s, CudaDevice& device) {
  const TensorType& logits = s.inputs[0];
  if (!on_device(logits.dtype) || logits.elements() == 0) return nullptr;
  const int64_t rows = logits.shape[0], classes = logits.shape[1];
  const double smoothing = s.attrs.real("label_smoothing", 0);
  const Settings settings = {rows, static_cast<int>(classes), s.attrs.integer("ignore_index", -1),
                             static_cast<float>(smoothing / static_cast<double>(classes)),
                             static_cast<float>(1 - smoothing)};
  const unsigned blocks = row_blocks(rows, classes, device);
  const auto launch = [&device, settings, blocks](const KernelArgs& args) {
    const ScalarOutput out{args.outputs[0].as<float>(), args.adds_into(0),
                           args.inputs[2].as<float>()};
    double* const partial = reinterpret_cast<double*>(args.workspace);
    with_device_type(args.inputs[0].type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      with_row_group(settings.classes, [&](auto threads) {
        losses<T, threads.value><<<blocks, kRowThreads, 0, device.stream>>>(
            args.inputs[0].as<T>(), args.inputs[1].as<int32_t>(), args.outputs[1].as<float>(),
            settings, partial, out);
      });
    });
    launch_add_partial_sums(partial, blocks, out, device);
    check_launch("softmax_cross_entropy");
  };
  return own_kernel(launch, scalar_scratch(blocks));
}

}  // namespace

extern const CudaKernel cuda_softmax_cross_entropy{"softmax_cross_entropy", make};

}  // namespace thimble
