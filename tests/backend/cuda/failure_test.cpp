// The sentences of a GPU's failures. No GPU is needed.
#include <gtest/gtest.h>

#include "backend/cuda/cuda_failure.h"

namespace thimble {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

std::string text_of(cudaError_t status, int driver = CUDART_VERSION) {
  return failure_text(status, "a step", driver);
}

testing::AssertionResult says(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) {
    if (text.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
    }
  }
  return testing::AssertionSuccess() << text;
}

TEST(CudaFailure, NoDeviceOffersTheOthers) {
  for (const std::string& text :
       {text_of(cudaErrorNoDevice), text_of(cudaErrorInsufficientDriver, 0)}) {
    EXPECT_EQ(text,
              "there is no CUDA device here; train with --device cpu, or plan with --device null");
  }
}

TEST(CudaFailure, AnOldDriverIsNamedWithWhatIsWanted) {
  EXPECT_TRUE(says(
      text_of(cudaErrorInsufficientDriver, 11080),
      {"too old: it knows CUDA 11.8, this build wants ", "update the driver", "--device cpu"}));
  EXPECT_TRUE(says(text_of(cudaErrorUnsupportedPtxVersion), {"update it"}));
}

TEST(CudaFailure, ALostCardIsCalledLost) {
  for (const cudaError_t status :
       {cudaErrorIllegalAddress, cudaErrorECCUncorrectable, cudaErrorLaunchFailure,
        cudaErrorLaunchTimeout, cudaErrorMisalignedAddress, cudaErrorUnknown}) {
    EXPECT_TRUE(is_lost(status));
    EXPECT_TRUE(says(text_of(status), {"failed at a step: ", cudaGetErrorName(status),
                                       "the card is lost to this process", "run again"}));
  }
}

TEST(CudaFailure, OthersAreNotTakenForALostCard) {
  for (const cudaError_t status :
       {cudaSuccess, cudaErrorMemoryAllocation, cudaErrorInvalidValue, cudaErrorNoDevice,
        cudaErrorStreamCaptureUnsupported, cudaErrorDevicesUnavailable}) {
    EXPECT_FALSE(is_lost(status));
    EXPECT_FALSE(says(text_of(status), {"lost"}));
  }
  EXPECT_TRUE(says(text_of(cudaErrorDevicesUnavailable), {"another program"}));
  EXPECT_TRUE(says(text_of(cudaErrorNoKernelImageForDevice), {"ARCHITECTURES=native"}));
  EXPECT_TRUE(says(text_of(cudaErrorInvalidValue), {"cudaErrorInvalidValue", "nvidia-smi"}));
}

TEST(CudaFailure, OutOfMemoryNamesABudgetThatFits) {
  EXPECT_EQ(
      no_room_text("an arena of 4.50 GiB", Bytes(9 * kGiB / 2), Bytes(3 * kGiB), Bytes(8 * kGiB)),
      "the GPU has 3.00 GiB of its 8.00 GiB free, too little for an arena of 4.50 GiB; try "
      "--memory 2688MiB, or see with nvidia-smi what else uses the card");
  // Of much, a little is left for what comes after the arena; what does not fit in one piece is
  // not suggested again.
  EXPECT_TRUE(says(no_room_text("x", Bytes(90 * kGiB), Bytes(80 * kGiB), Bytes(100 * kGiB)),
                   {"--memory 81408MiB"}));
  EXPECT_TRUE(
      says(no_room_text("x", Bytes(kGiB), Bytes(2 * kGiB), Bytes(8 * kGiB)), {"--memory 896MiB"}));
}

TEST(CudaFailure, OutOfMemorySuggestsNothingThatCannotBe) {
  const std::string full = no_room_text("an arena", Bytes(kGiB), Bytes(1000), Bytes(8 * kGiB));
  EXPECT_FALSE(says(full, {"--memory"}));
  EXPECT_TRUE(says(full, {"nvidia-smi", "--device cpu"}));
  EXPECT_TRUE(says(no_room_text("cuDNN", Bytes(), Bytes(1000), Bytes(8 * kGiB)),
                   {"give a smaller --memory"}));
  EXPECT_TRUE(says(no_room_text("an arena", Bytes(kGiB), Bytes(), Bytes()),
                   {"too little free memory for an arena; see with nvidia-smi"}));
}

}  // namespace
}  // namespace thimble
