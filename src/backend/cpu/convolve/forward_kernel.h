// A forward convolution as a kernel: one pass over the images, the weights packed first. It is
// conv2d, and, with the weights turned, the data gradient of a convolution of stride 1.
#pragma once

#include "backend/cpu/convolve/convolution_call.h"
#include "backend/cpu/convolve/image_slices.h"
#include "backend/cpu/convolve/packed_weights.h"
#include "backend/kernel.h"

namespace thimble {

class ForwardKernel final : public Kernel {
 public:
  // `c` is what is computed, whose images are input `images` and whose weights are the other input;
  // `turned`: those are of c.turned(). Images of another dtype than c's go through the workspace.
  ForwardKernel(const Convolution& c, const Signature& s, size_t images, bool turned)
      : batch_(c.batch),
        channels_(c.out_c),
        add_(s.accumulate != 0),
        images_(images),
        as_stored_(s.inputs[images].dtype == c.dtype),
        slice_(as_stored_ ? c.batch : slice_images(c, s.inputs[images].dtype)),
        block_(as_stored_
                   ? c.out_c
                   : block_channels(c.out_c, c.bytes_per_output(), c, s.inputs[images].dtype)) {
    Convolution block = c.of(slice_);
    block.out_c = block_;
    convolve_ = ConvolutionCall(ConvolutionPart::forward, block, add_);
    WorkspaceParts parts;
    const DType storage = s.inputs[1 - images_].dtype;
    weights_ = turned
                   ? PackedWeights(c.turned(), block.turned(), storage, convolve_.weights(), true)
                   : PackedWeights(c, block, storage, convolve_.weights(), false);
    packed_at_ = parts.take(weights_.bytes());
    if (!as_stored_) {
      x_ = ImageSlices(s.inputs[images_], slice_, c.in_c, parts);
      y_ = ImageSlices(s.outputs[0], slice_, block_, parts);
    }
    scratch_at_ = parts.take(convolve_.scratch_bytes());
    name = convolve_.name(turned ? "turned forward " : "");
    workspace = parts.total();
  }

  void run(const KernelArgs& args) override {
    std::byte* room = args.workspace;
    if (as_stored_) {
      const void* weights = weights_.pack(args.inputs[1 - images_], 0, room + packed_at_);
      convolve_.run(args.inputs[images_].data, weights, args.outputs[0].data, room + scratch_at_);
      return;
    }
    for (int64_t o = 0; o < channels_; o += block_) {
      const void* weights = weights_.pack(args.inputs[1 - images_], o, room + packed_at_);
      for (int64_t n = 0; n < batch_; n += slice_) {
        const float* x = x_.read(args.inputs[images_], {n, 0}, room);
        float* y = y_.open(args.outputs[0], {n, o}, room, add_);
        convolve_.run(x, weights, y, room + scratch_at_);
        y_.close(args.outputs[0], {n, o}, room);
      }
    }
  }

 private:
  const int64_t batch_, channels_;
  const bool add_;
  const size_t images_;
  const bool as_stored_;
  const int64_t slice_, block_;
  PackedWeights weights_;
  ImageSlices x_, y_;
  ConvolutionCall convolve_;
  int64_t packed_at_ = 0, scratch_at_ = 0;
};

}  // namespace thimble
